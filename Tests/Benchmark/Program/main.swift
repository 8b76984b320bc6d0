// Usage: Benchmark inputs FOLDER            writes a token, its keys and an executable file of 1 MiB for the works and their peers
//        Benchmark WORK FOLDER              reads lines with a count, does the work that often, and answers each with a line of
//                                           the nanoseconds and the nanoseconds of processor time that all took
//
// Every result is compared with the right one. A wrong one ends the program with exit status 2.

import Glibc

let arguments = CommandLine.arguments
guard arguments.count == 3 else { stop("usage: Benchmark (inputs | WORK) FOLDER") }
do {
  if arguments[1] == "inputs" {
    try Inputs.write(to: arguments[2])
  } else if let count = Int(arguments[1].drop(while: { !$0.isNumber })), arguments[1].hasPrefix("served-") {
    let work = try ServedWork(Inputs(in: arguments[2]), proverCount: count)
    guard try work.perform(1).wrongCount == 0 else { stop("a result is wrong") }
    try serve(work.perform)
  } else {
    try serve(try makeWork(arguments[1], Inputs(in: arguments[2])))
  }
} catch {
  stop("\(arguments[1]): \(error)")
}

/// Answers each count as the other does, for a work that is repeated one by one. The first repetition fills caches, and is neither
/// timed nor counted.
func serve(_ work: () throws -> Bool) throws {
  guard try work() else { stop("a result is wrong") }
  try serve { count in try timed { try repeatMeasured(count, work) } }
}

/// Answers each count with the time that so many repetitions take.
func serve(_ work: (Int) throws -> Timing) throws {
  while let line = readLine() {
    guard let count = Int(line), count > 0 else { stop("a count is expected") }
    let timing = try work(count)
    print(timing.nanoseconds, timing.processorNanoseconds)
    fflush(nil)
    guard timing.wrongCount == 0 else { stop("\(timing.wrongCount) of \(count) results are wrong") }
  }
}

/// Does the work that often, and returns how many results were wrong. callgrind counts only within this function.
@inline(never)
func repeatMeasured(_ count: Int, _ work: () throws -> Bool) throws -> Int {
  var wrong = 0
  for _ in 0..<count where try !work() { wrong += 1 }
  return wrong
}

/// The time that repetitions took, by the clock and by the processors, and how many of their results were wrong.
struct Timing {
  let wrongCount: Int
  let nanoseconds: UInt64
  let processorNanoseconds: UInt64
}

/// Times a work that returns how many of its results were wrong.
func timed(_ work: () throws -> Int) throws -> Timing {
  let (start, used) = (now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID))
  let wrongCount = try work()
  return Timing(
    wrongCount: wrongCount, nanoseconds: now(CLOCK_MONOTONIC) - start,
    processorNanoseconds: now(CLOCK_PROCESS_CPUTIME_ID) - used)
}

private func now(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  unsafe clock_gettime(clock, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

func stop(_ reason: String) -> Never {
  print("error \(reason)")
  exit(2)
}
