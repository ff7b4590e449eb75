/* The logarithm of |Gamma| under the names of this library: the builtin is accurate (3 ulp) and takes any number of lanes. */
#define lgamma_float lgamma
#define lgamma_float4 lgamma
#define lgamma_float8 lgamma
#define lgamma_float16 lgamma
#define lgamma_double lgamma
#define lgamma_double4 lgamma
#define lgamma_double8 lgamma
#define lgamma_double16 lgamma
