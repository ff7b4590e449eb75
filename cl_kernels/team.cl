// A team of threads that runs the machine code of other kernels (Note [Team] in runtime/team.py, which lays the memory out).
//
// The thread that calls team_run works, too; the others are in team_help for ever. They stay awake for a while after
// each piece of work, for to wake a thread takes longer than most kernels do. Work that team_post leaves is begun by the
// first helper, or by who waits for it in team_wait; whoever begins a job has the others take part.
//
// x86-64 only: OpenCL C has no pointers to functions, so that a call is written in assembler.

#define CLOSED (1L << 62) // of `next`: there is nothing to take
#define PROCESSORS 1024
#define LAUNCH_ARGS 96    // arguments and local arrays of a kernel that has local arrays
#define ORDERS 64         // that may be left undone

// A launch of a kernel: function(arguments, context, group's place along x, y, z). Without `groups`: function(a, b, c).
struct job {
    ulong function, a, b, c;
    long groups;
    ulong locals; // address of: arguments, local arrays, the place of each in a member's local memory; or 0
};

struct member {
    long asleep; // it waits, or is about to wait, for its semaphore
    long thread; // what the system calls it; 0 before it has begun
    long place;  // the processor it is bound to, or -1
    long unused[5];
    ulong semaphore[8];
    long next; // first of its portions that nobody has taken
    long unused1[7];
    ulong own[LAUNCH_ARGS]; // the arguments where it has local arrays of its own
};

// Jobs to be done one after the other.
struct order {
    ulong jobs;
    long count;
};

struct team {
    struct job job;
    long step;  // groups in a portion
    long parts; // members that have portions of their own
    long inside; // helpers that may be at work
    long unused2[7];
    long round; // counts the jobs that were divided
    long unused3[7];
    ulong sem_wait, sem_post, sched_yield; // addresses of the C library's functions
    long patience;                         // turns a helper waits awake
    long members;                          // threads that may work, with the caller
    ulong local_memory;
    long local_bytes; // of it for each member
    ulong sched_getcpu, sched_setaffinity;
    long here;  // the processor that the caller was met on
    long spare; // the processor that no helper is bound to, or -1
    ulong processors[PROCESSORS / 64]; // room for a set of them
    long flush; // denormal numbers are zeros, operands and results
    long unused4[4];
    long posted; // orders left so far
    long unused5[7];
    long done; // of them
    long busy; // one is being done
    long unused6[6];
    struct order orders[ORDERS];
};

#define READ(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define WRITE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELEASE)
#define TURNS 64 // between two offers of the processor to another thread, which may be the one that is waited for

#ifdef __AVX512F__
#define WIDE_REGISTERS                                                                                                 \
    "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",         \
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#else
#define WIDE_REGISTERS
#endif

// Below the stack pointer the compiler may keep values, 128 bytes of them; vectors want the stack aligned to their size.
static ulong call(ulong function, ulong a, ulong b, ulong c, ulong d, ulong e)
{
    __asm__ volatile("movq %[e], %%r8\n\tmovq %%rsp, %%r15\n\tleaq -128(%%rsp), %%rsp\n\tandq $-64, %%rsp\n\t"
                     "call *%%rax\n\tmovq %%r15, %%rsp"
                     : "+a"(function), "+D"(a), "+S"(b), "+d"(c), "+c"(d)
                     : [e] "r"(e)
                     : "r15", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", WIDE_REGISTERS "memory", "cc");
    return function; // its result, in the same register
}

// A turn of waiting awake.
static void linger(__global struct team *team, long turns)
{
    __builtin_ia32_pause();
    if (turns % TURNS == 0) call(team->sched_yield, 0, 0, 0, 0, 0);
}

// A kernel's arguments for one member: its local arrays follow what the launch gave.
static ulong arguments(__global struct team *team, __global struct member *members, long member)
{
    __global const long *locals = (__global const long *)team->job.locals;
    if (!locals) return team->job.a;
    __global const ulong *given = (__global const ulong *)team->job.a;
    __global ulong *own = members[member].own;
    const long count = locals[0];
    for (long i = 0; i < count; ++i) own[i] = given[i];
    for (long i = 0; i < locals[1]; ++i)
        own[count + i] = team->local_memory + member * team->local_bytes + locals[2 + i];
    return (ulong)own;
}

// Run groups `first` to `end` of a job.
static void run(__global const struct team *team, __global const struct job *job, ulong arguments, long first, long end)
{
    const long nx = ((__global const long *)job->b)[0], ny = ((__global const long *)job->b)[1], flush = team->flush;
    const uint mode = flush ? __builtin_ia32_stmxcsr() : 0;
    if (flush) __builtin_ia32_ldmxcsr(mode | 0x8040);
    for (long i = first; i < end; ++i) call(job->function, arguments, job->b, i % nx, i / nx % ny, i / nx / ny);
    if (flush) __builtin_ia32_ldmxcsr(mode);
}

// Take the next portion of an owner's. Nothing of the job may be read before: until then it may be the next one, half written.
static bool take(__global struct team *team, __global struct member *members, long owner, long *portion)
{
    const long taken = __atomic_fetch_add(&members[owner].next, 1, __ATOMIC_ACQ_REL);
    if (taken >= CLOSED) return false;
    const long portions = (team->job.groups + team->step - 1) / team->step;
    *portion = owner * portions / team->parts + taken;
    return *portion < (owner + 1) * portions / team->parts;
}

// Take portions of the job until there are none left: the member's own, which touch what it touched in the launch before and
// has in its cache, then those that others have not come to.
static void take_part(__global struct team *team, __global struct member *members, long member, long count)
{
    __global struct job *job = &team->job;
    ulong a = 0;
    long portion;
    for (long i = 0; i < count; ++i) {
        const long owner = (member + i) % count;
        while (take(team, members, owner, &portion)) {
            if (!a) a = arguments(team, members, member);
            run(team, job, a, portion * team->step, min((portion + 1) * team->step, job->groups));
        }
    }
}

// Bind the helper whose processor the caller runs on to the one that is free: the two would share it else.
static void make_room(__global struct team *team, __global struct member *members)
{
    const long here = (int)call(team->sched_getcpu, 0, 0, 0, 0, 0);
    if (here == team->here) return;
    team->here = here;
    const long spare = team->spare;
    for (long i = 1; i < team->members; ++i) {
        if (members[i].place != here || !members[i].thread) continue;
        team->processors[spare / 64] = 1UL << spare % 64;
        if (!call(team->sched_setaffinity, members[i].thread, PROCESSORS / 8, (ulong)team->processors, 0, 0)) {
            members[i].place = spare;
            team->spare = here;
        }
        team->processors[spare / 64] = 0;
    }
}

static void wake(__global struct team *team, __global struct member *member)
{
    if (READ(member->asleep) && __atomic_exchange_n(&member->asleep, 0, __ATOMIC_ACQ_REL))
        call(team->sem_post, (ulong)member->semaphore, 0, 0, 0, 0);
}

// Do jobs one after the other, as `member`.
static void do_jobs(
    __global struct team *team, __global struct member *members, long member, __global const struct job *jobs, long count)
{
    for (long j = 0; j < count; ++j) {
        __global const struct job *job = jobs + j;
        if (!job->groups) {
            call(job->function, job->a, job->b, job->c, 0, 0);
            continue;
        }
        team->job = *job;
        if (job->groups == 1 || team->members == 1) {
            run(team, job, arguments(team, members, member), 0, job->groups);
            continue;
        }
        team->step = job->groups / (16 * team->members) + 1;
        const long parts = team->parts = min(job->groups, team->members);
        for (long i = 0; i < parts; ++i) WRITE(members[i].next, 0);
        WRITE(team->round, team->round + 1);
        if (!member && team->spare >= 0) make_room(team, members);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); // or else we miss who falls asleep now
        for (long i = 1; i < parts; ++i)
            if (i != member) wake(team, members + i);
        take_part(team, members, member, team->members);
        for (long i = 0; i < parts; ++i) WRITE(members[i].next, CLOSED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        for (long turns = 1; READ(team->inside); ++turns) linger(team, turns);
    }
}

// Help whoever does a job.
static void help(__global struct team *team, __global struct member *members, long member, long count)
{
    __atomic_fetch_add(&team->inside, 1, __ATOMIC_SEQ_CST);
    take_part(team, members, member, count);
    __atomic_fetch_sub(&team->inside, 1, __ATOMIC_ACQ_REL);
}

static bool is_undone(__global struct team *team) { return READ(team->done) != READ(team->posted); }

// Do the next order, if there is one and nobody else does one; `seen` becomes its last round.
static bool do_order(__global struct team *team, __global struct member *members, long member, long *seen)
{
    if (__atomic_exchange_n(&team->busy, 1, __ATOMIC_ACQ_REL)) return false;
    const bool found = is_undone(team);
    if (found) {
        const long number = team->done;
        __global const struct order *order = team->orders + number % ORDERS;
        do_jobs(team, members, member, (__global const struct job *)order->jobs, order->count);
        *seen = team->round;
        WRITE(team->done, number + 1);
    }
    WRITE(team->busy, 0);
    return found;
}

// Do the jobs now; there are no orders.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void team_run(__global struct team *team, __global struct member *members, __global const struct job *jobs, long count)
{
    do_jobs(team, members, 0, jobs, count);
}

// Leave the jobs to be done. There is room for the order, and a helper.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void team_post(__global struct team *team, __global struct member *members, __global const struct job *jobs, long count)
{
    __global struct order *order = team->orders + team->posted % ORDERS;
    order->jobs = (ulong)jobs;
    order->count = count;
    WRITE(team->posted, team->posted + 1);
    if (team->spare >= 0) make_room(team, members);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); // or else we miss that it falls asleep now
    wake(team, members + 1);
}

// Take part in what is left to do until so many orders are done.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void team_wait(__global struct team *team, __global struct member *members, long orders)
{
    long seen = -1;
    for (long turns = 1; READ(team->done) < orders;) {
        if (do_order(team, members, 0, &seen)) continue;
        const long round = READ(team->round);
        if (round != seen) {
            seen = round;
            help(team, members, 0, team->members);
            turns = 1;
        } else {
            linger(team, turns++);
        }
    }
}

// What a thread of the team does until the team has no members.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void team_help(__global struct team *team, __global struct member *members, long member)
{
    __global struct member *me = members + member;
    long seen = READ(team->round);
    for (;;) {
        for (long turns = 1; READ(team->round) == seen; ++turns) {
            if (member == 1 && is_undone(team) && READ(team->members) > 1 && do_order(team, members, 1, &seen)) {
                turns = 0;
                continue;
            }
            linger(team, turns);
            if (turns < team->patience) continue;
            __atomic_exchange_n(&me->asleep, 1, __ATOMIC_SEQ_CST);
            const bool idle = READ(team->round) == seen && !(member == 1 && is_undone(team));
            if (idle || !__atomic_exchange_n(&me->asleep, 0, __ATOMIC_SEQ_CST))
                call(team->sem_wait, (ulong)me->semaphore, 0, 0, 0, 0); // posted already in the second case
            turns = 0;
        }
        seen = READ(team->round);
        const long members_now = READ(team->members);
        if (!members_now) return;
        if (member >= members_now) continue;
        help(team, members, member, members_now);
    }
}

// What a kernel of ours asks of the thread that runs it.
__kernel void team_probe(__global long *out, long a, float b)
{
    __local long places[4];
    for (int i = 0; i < 3; ++i) places[i] = get_group_id(i) + 100 * get_num_groups(i) + 10000 * get_local_size(i);
    const long n = 4 * ((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0));
    places[3] = a + (long)b + get_global_offset(0);
    for (int i = 0; i < 4; ++i) out[n + i] = places[i];
}
