// A team of threads that runs the machine code of other kernels (Note [Team] in runtime/team.py). The memory is laid
// out as runtime/team_layout.py says, too.
//
// Member 0 of the team is the thread that calls team_run; the other members, the helpers, stay in team_help until the team
// is dissolved. A helper spins for a while after each job before it sleeps, because waking a thread takes longer than most
// kernels run. Orders queued by team_post are begun by helper 1, or by the thread that waits for them in team_wait;
// whoever begins a job has the other members take part in it.
//
// x86-64 only: OpenCL C has no function pointers, so machine code is called through inline assembly.

#define CLOSED (1L << 62) // value of `member.next` from which on there are no portions to take
#define PROCESSORS 1024
#define LAUNCH_ARGS 96    // most arguments, local arrays included, of a kernel that has local arrays
#define ORDERS 64         // most orders that may be outstanding

// A kernel launch: function(arguments a, context b, group index x, y, z) for each group. With groups == 0, a plain call
// function(a, b, c).
struct job {
    ulong function, a, b, c;
    long groups;
    ulong locals; // address of longs: argument count, local array count, each array's offset in local memory; or 0
};

struct member {
    long asleep; // the member waits, or is about to wait, for its semaphore
    long thread; // system thread id; 0 before the thread has started
    long place;  // the processor the thread is bound to, or -1
    long unused[5];
    ulong semaphore[8];
    long next; // index of the first of this member's portions that nobody has taken
    long unused1[7];
    ulong own[LAUNCH_ARGS]; // this member's copy of the arguments, for kernels with local arrays
};

// A queue entry of team_post: `count` jobs to be run one after the other.
struct order {
    ulong jobs;
    long count;
};

struct team {
    struct job job;
    long step;  // groups per portion
    long parts; // members that own portions
    long inside; // helpers that may be working on the job
    long unused2[7];
    long round; // number of jobs divided among members so far
    long unused3[7];
    ulong sem_wait, sem_post, sched_yield; // addresses of the C library's functions
    long patience;                         // spins before a helper goes to sleep
    long members;                          // threads that may work, the caller included
    ulong local_memory;
    long local_bytes; // bytes of local_memory per member
    ulong sched_getcpu, sched_setaffinity;
    long here;  // the processor on which the caller was last seen
    long spare; // the processor that no helper is bound to, or -1
    ulong processors[PROCESSORS / 64]; // scratch CPU mask for sched_setaffinity
    long flush; // treat denormal operands and results as zero
    long unused4[4];
    long posted; // orders posted so far
    long unused5[7];
    long done; // orders completed
    long busy; // lock: some thread is running an order
    long unused6[6];
    struct order orders[ORDERS];
};

#define READ(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define WRITE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELEASE)
#define TURNS 64 // spins between two calls of sched_yield: the thread waited for may need this processor

#ifdef __AVX512F__
#define WIDE_REGISTERS                                                                                                 \
    "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",         \
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#else
#define WIDE_REGISTERS
#endif

// Skip the red zone, 128 bytes below the stack pointer where the compiler may keep values, and align the stack to 64 bytes
// for spilled vectors.
static ulong call(ulong function, ulong a, ulong b, ulong c, ulong d, ulong e)
{
    __asm__ volatile("movq %[e], %%r8\n\tmovq %%rsp, %%r15\n\tleaq -128(%%rsp), %%rsp\n\tandq $-64, %%rsp\n\t"
                     "call *%%rax\n\tmovq %%r15, %%rsp"
                     : "+a"(function), "+D"(a), "+S"(b), "+d"(c), "+c"(d)
                     : [e] "r"(e)
                     : "r15", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", WIDE_REGISTERS "memory", "cc");
    return function; // rax: it held the address, and now holds the callee's result
}

// One spin of a busy wait.
static void linger(__global struct team *team, long turns)
{
    __builtin_ia32_pause();
    if (turns % TURNS == 0) call(team->sched_yield, 0, 0, 0, 0, 0);
}

// Return the address of a member's kernel arguments: those of the launch, followed by the member's own local arrays.
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

// Run groups [first, end) of a job, with the processor's denormal modes (DAZ, FTZ) set where `team.flush` asks for them.
static void run(__global const struct team *team, __global const struct job *job, ulong arguments, long first, long end)
{
    const long nx = ((__global const long *)job->b)[0], ny = ((__global const long *)job->b)[1], flush = team->flush;
    const uint mode = flush ? __builtin_ia32_stmxcsr() : 0;
    if (flush) __builtin_ia32_ldmxcsr(mode | 0x8040);
    for (long i = first; i < end; ++i) call(job->function, arguments, job->b, i % nx, i / nx % ny, i / nx / ny);
    if (flush) __builtin_ia32_ldmxcsr(mode);
}

// Take the next of the owner's portions; return false if there is none. The job's fields may be read only after a portion
// was taken: until then `team->job` may be the next job, half written.
static bool take(__global struct team *team, __global struct member *members, long owner, long *portion)
{
    const long taken = __atomic_fetch_add(&members[owner].next, 1, __ATOMIC_ACQ_REL);
    if (taken >= CLOSED) return false;
    const long portions = (team->job.groups + team->step - 1) / team->step;
    *portion = owner * portions / team->parts + taken;
    return *portion < (owner + 1) * portions / team->parts;
}

// Work on the job until no portion is left: first the member's own portions, whose memory is likely to be in its cache from
// the launch before, then portions stolen from the other members.
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

// If a helper is bound to the processor that the caller runs on, bind the helper to the spare processor instead; otherwise
// both threads would share one processor.
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

// Run the jobs one after the other; the calling thread is `member`.
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
        __atomic_thread_fence(__ATOMIC_SEQ_CST); // orders the new `round` before reading `asleep`, else a wake-up is lost
        for (long i = 1; i < parts; ++i)
            if (i != member) wake(team, members + i);
        take_part(team, members, member, team->members);
        for (long i = 0; i < parts; ++i) WRITE(members[i].next, CLOSED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        for (long turns = 1; READ(team->inside); ++turns) linger(team, turns);
    }
}

// Take part in the current job. `inside` keeps whoever runs the job from starting the next one meanwhile.
static void help(__global struct team *team, __global struct member *members, long member, long count)
{
    __atomic_fetch_add(&team->inside, 1, __ATOMIC_SEQ_CST);
    take_part(team, members, member, count);
    __atomic_fetch_sub(&team->inside, 1, __ATOMIC_ACQ_REL);
}

static bool is_undone(__global struct team *team) { return READ(team->done) != READ(team->posted); }

// Run the next order; return false if there is none or another thread is running one. `seen` becomes the round of the
// order's last job.
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

// Run the jobs now. No order may be outstanding.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void team_run(__global struct team *team, __global struct member *members, __global const struct job *jobs, long count)
{
    do_jobs(team, members, 0, jobs, count);
}

// Queue the jobs as one order. The caller has made sure that `orders` has room and that the team has a helper.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void team_post(__global struct team *team, __global struct member *members, __global const struct job *jobs, long count)
{
    __global struct order *order = team->orders + team->posted % ORDERS;
    order->jobs = (ulong)jobs;
    order->count = count;
    WRITE(team->posted, team->posted + 1);
    if (team->spare >= 0) make_room(team, members);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); // orders `posted` before reading `asleep`, else a wake-up is lost
    wake(team, members + 1);
}

// Run and help with outstanding orders until at least `orders` of them are done, counted from the team's start.
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

// Main loop of a helper thread; it returns when `team->members` becomes 0.
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
                call(team->sem_wait, (ulong)me->semaphore, 0, 0, 0, 0); // if not idle, wake() has posted it: no wait
            turns = 0;
        }
        seen = READ(team->round);
        const long members_now = READ(team->members);
        if (!members_now) return;
        if (member >= members_now) continue;
        help(team, members, member, members_now);
    }
}

// Test kernel: uses each thing that a kernel may ask of the thread that runs it (ids, sizes, local memory, arguments).
__kernel void team_probe(__global long *out, long a, float b)
{
    __local long places[4];
    for (int i = 0; i < 3; ++i) places[i] = get_group_id(i) + 100 * get_num_groups(i) + 10000 * get_local_size(i);
    const long n = 4 * ((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0));
    places[3] = a + (long)b + get_global_offset(0);
    for (int i = 0; i < 4; ++i) out[n + i] = places[i];
}
