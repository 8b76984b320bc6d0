/*
 * A model of the device's ledger for spin: docs/model.md says what it covers. Names are those of Sources/HoldfastDevice/Ledger and
 * Sources/HoldfastCore/Policy.
 *
 * Two connections judge requests with one token, in any order, numbers repeated at will. Each statement is a step between which
 * the other connection may run, and the power may be cut. A constant BREAK_… leaves out one rule of the ledger, and REACH_… asks
 * whether a situation occurs at all; Tests/Model/run compiles the model with one of them at a time.
 */

/* The bounds of the search. The real limits are in Limits.swift and UserRecord.swift. */
#ifndef ROUNDS_0
#define ROUNDS_0 2      /* rounds of the first connection, cut-off ones included */
#endif
#ifndef ROUNDS_1
#define ROUNDS_1 2      /* rounds of the second connection */
#endif
#ifndef CUTS
#define CUTS 1          /* power cuts */
#endif
#ifndef FAULTS
#define FAULTS 1        /* writes or synchronisations that fail */
#endif
#ifndef TICKS
#define TICKS 1         /* lockouts that pass */
#endif
#ifndef NUMBERS
#define NUMBERS 3       /* request numbers from 1 on */
#endif
#define WINDOW 1        /* request numbers below the highest one that the record tells apart: 64 in RequestRecord */
#ifndef MAXIMUM_USES
#define MAXIMUM_USES 2  /* `max` of the token */
#endif
#define POSITIONS 2     /* positions of the user's codes */
#define FREE 2          /* failures from which on the user is locked out: 5 in Lockout */

/* Codes of a request: a position, or one of these. */
#define WRONG 7
#define NO_CODE 6

/* Outcomes and statuses. */
#define UNKNOWN 0
#define ACCEPTED 1
#define INTERNAL 2
#define BUSY 3
#define DENIED 4
#define ATTEMPT 5       /* not an answer: the codes are still to be compared */

/* The rows that a round reads and writes: LedgerTables+Rounds.swift and LedgerTables+Users.swift. */
typedef Tables {
  byte uses;            /* UseRecord.count */
  byte highest;         /* RequestRecord: 0 if there is no record */
  byte window;
  byte digest;          /* the command of the highest number */
  byte outcome;
  byte failures;        /* UserRecord.failureCount */
  byte lockedUntil;
  byte nextPosition;    /* CodeAccount.nextPosition */
  byte audit;           /* entries of accepted rounds */
  byte resets           /* for the properties: codes that were accepted so far */
};

inline copy(to, from) {
  d_step {
  to.uses = from.uses; to.highest = from.highest; to.window = from.window; to.digest = from.digest; to.outcome = from.outcome;
  to.failures = from.failures; to.lockedUntil = from.lockedUntil; to.nextPosition = from.nextPosition; to.audit = from.audit;
  to.resets = from.resets }
}

inline clear(t) {
  d_step {
  t.uses = 0; t.highest = 0; t.window = 0; t.digest = 0; t.outcome = 0; t.failures = 0; t.lockedUntil = 0; t.nextPosition = 0;
  t.audit = 0; t.resets = 0 }
}

/* RequestRecord.covers(_:clockFloor:) */
#ifdef BREAK_BELOW_WINDOW
#define COVERS(t, n) (t.highest > 0 && (n == t.highest || (n < t.highest && t.highest - n <= WINDOW && \
  ((t.window >> (t.highest - n - 1)) & 1))))
#else
#define COVERS(t, n) (t.highest > 0 && n <= t.highest && (n == t.highest || t.highest - n > WINDOW || \
  ((t.window >> (t.highest - n - 1)) & 1)))
#endif

/* What is durable, and what readers see: Ledger.durableTables. */
Tables disk;
/* Whether the outcome in `disk` is synchronised: `keepOutcome` does not wait for the disk. */
bool outcomeIsSafe = true;
/* The open transaction, which the holder of the monitor sees: Ledger.tables. */
Tables work;
/* The place to which a joined write that is not kept is undone: Database.part(isKept:_:). */
Tables savepoint;
/* What a transaction has written into the write-ahead log and not synchronised; it may survive a power cut as a whole. */
Tables log;
bool logHolds;

/* The memory of the process: Ledger.monitor, Ledger.group, Ledger.arriving, WriteGroup.result, RunningRequests. */
byte monitor;
bool group;
byte arriving;
byte member;            /* bit set of the connections in the group */
#define NOTHING 0
#define DURABLE 1
#define FAILED 2
byte ended[2];
byte acting;            /* bit set of numbers: RunningRequests.acting */
byte outcomes[NUMBERS + 1];
byte written;           /* bit set of numbers: the outcomes that the open transaction writes */
#ifdef FRESH_NUMBERS
byte begun;
#endif

byte now;
byte cuts;
byte faults;
bool cut[2];
bool alive[2];          /* the connection has not ended */

/* The facts that the properties are about. No step of the ledger reads them. */
byte runs[NUMBERS + 1];         /* how often the actuator began with the request of that number */
bool done[NUMBERS + 1];         /* the actuator carried it out, and did not fail */
byte total;                     /* all of them */
byte comparisons;               /* comparisons of codes since one was accepted */
byte usedPositions;             /* bit set of the positions whose code was accepted */

/* The properties. Each becomes true at the step that breaks it. */
bool runsTwice;                 /* a request is carried out twice */
bool exceedsUses;               /* more requests are carried out than `max` allows */
bool runsUnrecorded;            /* the actuator acts before its round is durable */
bool answersUnrecorded;         /* an answer says accepted, or names a number, without a durable record */
bool answersUntruly;            /* an answer says accepted, and the command was not carried out */
bool withholdsOutcome;          /* a repetition does not learn the outcome that the device knows */
bool forgets;                   /* after a power cut, a request that was carried out is not recorded */
bool tears;                     /* a part of a round is durable, and another is not */
bool takesCodeTwice;            /* a code of the same position is accepted twice */
bool comparesTooMuch;           /* more codes are compared than the failures and lockouts allow */

inline adopt(t) {
  d_step {
  if
  :: t.resets != disk.resets -> comparisons = 0
  :: else
  fi;
  copy(disk, t);
  outcomeIsSafe = true;
  tears = (disk.uses != disk.audit);
  assert(!tears) }
}

/* One write of a transaction. It may fail, and with it the round; and the power may be cut before it. */
#ifdef BREAK_NO_TRANSACTION
#define ROW(statement) statement; adopt(work)
#else
#define ROW(statement) statement
#endif
inline row() {
  if
  :: skip
  :: faults < FAULTS -> faults++; goto undo
  :: cuts < CUTS -> powerFails()
  fi
}

/* The power fails: all memory is lost, and so may be all that was not synchronised. */
inline powerFails() {
  cuts++;
#ifdef BREAK_NOT_SYNCHRONISED
  if
  :: skip
  :: clear(disk); comparisons = 0
  fi;
#else
  if
  :: logHolds -> adopt(log)
  :: !outcomeIsSafe -> disk.outcome = UNKNOWN
  :: skip
  fi;
#endif
  d_step {
  outcomeIsSafe = true;
  clear(log); logHolds = false; clear(work); clear(savepoint);
  monitor = 0; group = false; arriving = 0; member = 0; acting = 0;
  ended[0] = NOTHING; ended[1] = NOTHING;
  written = 255; dropOutcomes();
  n = 1;
  do
  :: n <= NUMBERS ->
    forgets = (runs[n] > 0 && !COVERS(disk, n)) || disk.uses < total || disk.audit < total;
    assert(!forgets);
    n++
  :: n > NUMBERS -> break
  od;
  n = 0;
  tears = (disk.uses != disk.audit);
  assert(!tears);
  cut[0] = alive[0]; cut[1] = alive[1] }
}

/* Decision.checkNumber: the status of a repetition. */
inline answerFrom(highest_, digest_, outcome_) {
  d_step {
    repeats = true;
    if
    :: number == highest_ && digest_ != command -> status = DENIED
    :: else ->
      if
      :: (acting >> number) & 1 -> status = BUSY
      :: else ->
        status = INTERNAL;
        if
        :: number == highest_ && outcomes[number] != UNKNOWN -> status = outcomes[number]
        :: number == highest_ && outcomes[number] == UNKNOWN && outcome_ != UNKNOWN -> status = outcome_
        :: else
        fi
      fi
    fi
  }
}

/* The count of uses by which a round is judged. */
#ifdef BREAK_JUDGES_OUTSIDE
#define USES disk.uses
#else
#define USES work.uses
#endif

/* Decision.decide(_:against:), within the transaction. Leaves the status, and whether the write is kept. */
inline decide() {
  if
#ifndef BREAK_NO_NUMBERS
  :: COVERS(work, number) -> answerFrom(work.highest, work.digest, work.outcome)
#endif
  :: else ->
    d_step {
      if
      :: USES >= MAXIMUM_USES -> status = DENIED; keeps = (phase == 2)
      :: USES < MAXIMUM_USES && code == NO_CODE -> status = ACCEPTED; keeps = true
      :: USES < MAXIMUM_USES && code != NO_CODE && phase == 1 ->
        /* beginAttempt: nobody compares a code during a lockout. */
        if
        :: now < work.lockedUntil -> status = DENIED
        :: else -> status = ATTEMPT; keeps = true; seen = work.nextPosition
        fi
      :: USES < MAXIMUM_USES && code != NO_CODE && phase == 2 ->
        keeps = true;
        if
#ifdef BREAK_NO_SECOND_LOOK
        :: matches -> status = ACCEPTED
        :: !matches -> status = DENIED
#else
        /* CodeAccount.useUp: the record may have changed since the comparison. */
        :: matches && code >= work.nextPosition -> status = ACCEPTED
        :: !(matches && code >= work.nextPosition) -> status = DENIED
#endif
        fi
      fi
    }
  fi
}

/* LedgerTables.save(_:) of a user. */
inline saveUser() {
  d_step {
    if
#ifdef BREAK_FAILURE_AFTER_COMPARING
    :: status == DENIED && phase == 2 && work.uses < MAXIMUM_USES ->
#else
    :: status == ATTEMPT ->
#endif
      work.failures++;
      if
      :: work.failures >= FREE -> work.lockedUntil = now + 1
      :: else
      fi
    :: status == ACCEPTED && code != NO_CODE ->
#ifndef BREAK_POSITION_NOT_KEPT
      work.nextPosition = code + 1;
#endif
      work.failures = 0; work.lockedUntil = 0; work.resets++
    :: else
    fi
  }
}

/* RequestRecord.accepting(_:digest:expires:) */
inline keepNumber() {
  if
  :: work.highest == 0 -> work.highest = number; work.window = 0; work.digest = command; work.outcome = UNKNOWN
  :: work.highest > 0 && number > work.highest ->
    work.window = ((work.window << (number - work.highest)) | (1 << (number - work.highest - 1))) & ((1 << WINDOW) - 1);
    work.highest = number; work.digest = command; work.outcome = UNKNOWN
  :: work.highest > 0 && number < work.highest -> work.window = work.window | (1 << (work.highest - number - 1))
  :: else
  fi;
#ifdef BREAK_OUTCOME_BEFORE_ACTING
  work.outcome = ACCEPTED
#endif
}

/* RunningRequests.outcomes, and LedgerTables.keep(_:of:) of each. */
#define WRITTEN(n) ((outcomes[n] != UNKNOWN) << n)
inline keepOutcomes(t) {
  d_step {
    written = WRITTEN(1) | WRITTEN(2);
#if NUMBERS > 2
    written = written | WRITTEN(3);
#endif
#if NUMBERS > 3
    written = written | WRITTEN(4);
#endif
    if
    :: t.highest > 0 && outcomes[t.highest] != UNKNOWN -> t.outcome = outcomes[t.highest]
    :: else
    fi
  }
}

/* RunningRequests.remove(_:) */
inline dropOutcome(n) {
  if
  :: (written >> n) & 1 -> outcomes[n] = UNKNOWN
  :: else
  fi
}

inline dropOutcomes() {
  dropOutcome(1); dropOutcome(2);
#if NUMBERS > 2
  dropOutcome(3);
#endif
#if NUMBERS > 3
  dropOutcome(4);
#endif
  written = 0
}

/* WriteGroup.end(_:), for those that wait. */
inline endGroup(result) {
  d_step {
    if
    :: member & 1 -> ended[0] = result
    :: else
    fi;
    if
    :: member & 2 -> ended[1] = result
    :: else
    fi;
    member = 0; group = false; monitor = 0;
    clear(work); clear(savepoint)
  }
}

/* Actuator.perform: it begins, and later is done or has failed. */
inline perform() {
  d_step {
    runs[number]++; total++;
    runsTwice = (runs[number] > 1); assert(!runsTwice);
    exceedsUses = (total > MAXIMUM_USES); assert(!exceedsUses);
    runsUnrecorded = !COVERS(disk, number) || disk.uses < total || disk.audit < total; assert(!runsUnrecorded)
  };
  if
  :: done[number] = true; result = ACCEPTED
  :: result = INTERNAL
  fi
}

inline takeCode() {
  d_step {
    if
    :: status == ACCEPTED && code != NO_CODE && !repeats ->
      takesCodeTwice = ((usedPositions >> code) & 1);
      assert(!takesCodeTwice);
      usedPositions = usedPositions | (1 << code)
    :: else
    fi
  }
}

/* M3, as soon as it leaves. */
inline answer() {
  d_step {
    answersUnrecorded = ((status == ACCEPTED || repeats) && !COVERS(disk, number)); assert(!answersUnrecorded);
    answersUntruly = (status == ACCEPTED && !done[number]); assert(!answersUntruly);
    /* A repetition of the highest number learns the outcome, unless the power was cut or a write failed. */
    withholdsOutcome = (repeats && status == INTERNAL && done[number] && cuts == 0 && faults == 0 && number == disk.highest);
    assert(!withholdsOutcome);
#ifdef REACH_REPETITION
    assert(!(repeats && status == ACCEPTED));
#endif
#ifdef REACH_REPETITION_AFTER_CUT
    assert(!(repeats && status == ACCEPTED && cuts > 0));
#endif
#ifdef REACH_UNKNOWN_OUTCOME
    assert(!(repeats && status == INTERNAL && cuts > 0 && runs[number] == 1 && number == disk.highest));
#endif
#ifdef REACH_ACCEPTED_CODES
    assert(!(status == ACCEPTED && usedPositions == 3));
#endif
#ifdef REACH_LOCKOUT_THAT_PASSED
    assert(!(status == ACCEPTED && code != NO_CODE && now == 1 && !repeats));
#endif
    number = 0; command = 0; code = 0; status = 0; repeats = false; keeps = false; phase = 0; seen = 0; matches = false;
    result = 0; joined = false; seenHighest = 0; seenDigest = 0; seenOutcome = 0
  }
}

proctype Connection(bit me; byte rounds) {
  byte number, command, code, status, phase, seen, result;
  byte seenHighest, seenDigest, seenOutcome;
  bool repeats, keeps, matches, joined;
  byte n;

begin:
  {
    do
    :: rounds > 0 ->
      /* Any request: a new number or an old one, with or without a code, and with a right or a wrong one. */
      atomic {
        rounds--;
#ifdef FRESH_NUMBERS
        begun++; number = begun;
#else
        select(number : 1 .. NUMBERS);
#endif
        if
#ifndef ONLY_CODES
        :: code = NO_CODE
#endif
#ifndef NO_CODES
        :: code = 0
        :: code = 1
        :: code = WRONG
#endif
        fi;
        command = (code != NO_CODE);
        phase = 1
      };

      /* Ledger.answerRepetition: it reads the durable record first, and then completes it with the memory. */
#ifndef BREAK_NO_NUMBERS
      atomic {
        if
        :: COVERS(disk, number) -> seenHighest = disk.highest; seenDigest = disk.digest; seenOutcome = disk.outcome
        :: else
        fi
      };
      if
      :: seenHighest > 0 ->
        answerFrom(seenHighest, seenDigest, seenOutcome);
#ifndef BREAK_NO_SECOND_READ
        /* Meanwhile the outcome may have been written, and have left the memory. */
        atomic {
          if
          :: status == INTERNAL && number == seenHighest && disk.highest == number && disk.outcome != UNKNOWN ->
            status = disk.outcome
          :: else
          fi
        };
#endif
        goto answered
      :: else
      fi;
#endif

transaction:
      /* Ledger.write(isKept:_:). What the holder of the monitor does to the open transaction is seen by nobody else, so it is one
         step, in which the power may fail before any write. */
      atomic { arriving++; keeps = false };
      atomic {
        d_step {
          monitor == 0;
          arriving--; joined = group;
          if
          :: joined -> copy(savepoint, work); member = member | (1 << me)
          :: else -> group = true; member = 1 << me; copy(work, disk)
          fi;
          monitor = 1
        };
        decide();
        if
        :: keeps ->
          /* LedgerTables.apply(_:to:state:), in its order. */
          row(); ROW(saveUser());
          if
          :: status == ACCEPTED ->
            row(); ROW(work.uses++);
            row(); ROW(keepNumber());
            acting = acting | (1 << number);
            row(); ROW(work.audit++)
          :: else
          fi;
          row()
        :: else
        fi;
#ifdef BREAK_ACTS_BEFORE_COMMIT
        if
        :: status == ACCEPTED && !repeats -> perform()
        :: else
        fi;
#endif
#ifdef BREAK_ANSWERS_BEFORE_COMMIT
        if
        :: status == ACCEPTED && !repeats && joined -> done[number] = true; monitor = 0; goto answered
        :: else
        fi;
#endif
        goto collected;

undo:
        /* A write that fails undoes only itself, and the round ends as internal. */
        if
        :: joined ->
#ifdef BREAK_UNDO_LEAVES_MEMORY
          /* As if the user's record had a copy in memory that no savepoint restores. */
          savepoint.failures = work.failures; savepoint.lockedUntil = work.lockedUntil;
#endif
#ifndef BREAK_NO_SAVEPOINT
          copy(work, savepoint)
#endif
        :: else
        fi;
        acting = acting & ~(1 << number);
        keeps = false; status = INTERNAL; repeats = false;

collected:
        skip
      };
      if
      :: joined ->
        /* Its writes become durable with the group. */
        monitor = 0;
#ifdef BREAK_JOINED_DO_NOT_WAIT
        goto returned;
#endif
        atomic { ended[me] != NOTHING; result = ended[me]; ended[me] = NOTHING }
      :: !joined && !keeps ->
        /* The first write of a group is not kept: the transaction is undone, and nothing is synchronised. */
        d_step { member = member & ~(1 << me); endGroup(DURABLE); result = DURABLE }
      :: else ->
        /* Ledger.commit(_:isAlone:_:): all threads that are about to write add theirs. */
        do
        :: arriving > 0 -> monitor = 0; atomic { monitor == 0 && arriving == 0; monitor = 1 }
        :: else -> break
        od;
        keepOutcomes(work);
#ifdef REACH_GROUP
        assert(!(member == 3 && work.uses == 2 && disk.uses == 0));
#endif
        d_step { copy(log, work); logHolds = true };
        if
        :: d_step {
#ifdef BREAK_NOT_SYNCHRONISED
          /* As if the log were left to the system: readers see it, and a power cut may lose it. */
          adopt(log);
#else
          adopt(log); clear(log); logHolds = false;
#endif
          dropOutcomes(); result = DURABLE
        }
        :: d_step { faults < FAULTS; faults++; result = FAILED }
        fi;
        d_step { member = member & ~(1 << me); endGroup(result) }
      fi;
#ifdef BREAK_JOINED_DO_NOT_WAIT
returned:
#endif
      /* Ledger.record: the error of the group is an error of each of its rounds. */
      if
      :: result == FAILED ->
        d_step {
          result = 0;
#ifndef BREAK_ACTS_BEFORE_COMMIT
          acting = acting & ~(1 << number);
#endif
          status = INTERNAL; repeats = false
        };
        goto answered
      :: else -> result = 0
      fi;
      if
      :: status == ATTEMPT ->
        /* DeviceSession.compareCodes */
        d_step {
          comparisons++;
          comparesTooMuch = (comparisons > FREE + 1 + now); assert(!comparesTooMuch);
          matches = (code != WRONG && code >= seen);
          phase = 2; status = 0
        };
        goto transaction
      :: status == ACCEPTED && !repeats ->
        takeCode();
#ifndef BREAK_ACTS_BEFORE_COMMIT
        perform();
#else
        result = (done[number] -> ACCEPTED : INTERNAL);
#endif
        /* Ledger.keepOutcome(_:of:) */
        d_step { acting = acting & ~(1 << number); outcomes[number] = result; status = result };
        if
        :: d_step {
            monitor == 0 && !group;
            if
            :: disk.highest == number && disk.outcome == UNKNOWN ->
              disk.outcome = outcomes[number]; outcomeIsSafe = false; clear(log); logHolds = false
            :: else
            fi;
            outcomes[number] = UNKNOWN
          }
        :: monitor == 0 && group
        fi
      :: else
      fi;
answered:
      atomic { skip; answer() }
    :: rounds == 0 -> alive[me] = false; break
    od
  } unless {
    atomic {
      d_step {
      cut[me];
      cut[me] = false;
      number = 0; command = 0; code = 0; status = 0; repeats = false; keeps = false; phase = 0; seen = 0; matches = false;
      result = 0; joined = false; seenHighest = 0; seenDigest = 0; seenOutcome = 0; n = 0 };
      goto begin
    }
  }
}

/* A power cut at any moment, and the time. */
proctype Power() {
  byte n;
end:
  do
  :: atomic { cuts < CUTS; powerFails() }
  :: atomic { now < TICKS && disk.lockedUntil > now; now++ }
  od
}

init {
  atomic {
    alive[0] = true; alive[1] = true;
    run Connection(0, ROUNDS_0);
    run Connection(1, ROUNDS_1);
    run Power()
  }
}
