/* The lesser and the greater of two numbers, which are named twice. The language's own are calls for 64-bit integers on PoCL,
   and a call lets go of all vectors in registers. */
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))
