import Glibc
import HoldfastLinux

/// The carrier, a separate program that talks to online services on the prover's behalf.
///
/// It gets its task only through its standard input, and has an empty environment. It never outlives the prover: the kernel kills
/// it when the prover's thread ends.
package enum CarrierProcess {
  /// The time that a carrier may take in addition to that of its task, in milliseconds.
  package static let graceMilliseconds = 15_000

  /// Starts a carrier, has it carry out a task, and ends it.
  ///
  /// - Parameters:
  ///   - task: the task's line.
  ///   - path: the carrier's program.
  ///   - timeoutSeconds: the task's time.
  ///   - graceMilliseconds: the time that the carrier may take in addition.
  ///   - lineByteLimit: the maximum byte count of a report, with its newline.
  ///   - progress: called for each step. Once it returns false, the carrier is ended.
  /// - Throws: ``CarrierProcessFault``.
  package static func carryOut(
    _ task: [UInt8], by path: String, timeoutSeconds: UInt64, graceMilliseconds: Int = graceMilliseconds,
    lineByteLimit: Int = CarrierReport.maximumByteCount, progress: (CarrierProgress) -> Bool
  ) throws(CarrierProcessFault) -> CarrierResult {
    let deadline = Deadline(afterMilliseconds: Int(timeoutSeconds) * 1000 + graceMilliseconds)
    let child: ChildProcess
    do throws(SystemError) { child = try ChildProcess(path: path, environment: []) } catch {
      throw .notStarted(error.number)
    }
    let conversation = converse(with: child, task, by: deadline, lineByteLimit, progress)
    let end = child.kill()
    switch conversation {
    case .result(let result): return result
    case .ended: throw .ended(end)
    case .garbage: throw .garbage
    case .slow: throw .slow
    case .stopped: throw .stopped
    }
  }

  private enum Conversation {
    case result(CarrierResult)
    case ended, garbage, slow, stopped
  }

  /// Sends the task and reads the reports up to the result.
  private static func converse(
    with child: borrowing ChildProcess, _ task: [UInt8], by deadline: Deadline, _ lineByteLimit: Int,
    _ progress: (CarrierProgress) -> Bool
  ) -> Conversation {
    var sentCount = 0
    var line: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while waits(for: child, isSending: sentCount < task.count, by: deadline) {
      if sentCount < task.count {
        let count = unsafe task.withUnsafeBytes {
          unsafe Thread.writeWithoutSignal(UnsafeRawBufferPointer(rebasing: $0[sentCount...]), to: child.input.number)
        }
        if count > 0 {
          sentCount += count
        } else if errno != EAGAIN && errno != EINTR {
          // It reads no more. What it has written still counts.
          sentCount = task.count
        }
      }
      while !deadline.hasPassed {
        let count = unsafe read(child.output.number, &chunk, chunk.count)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { break }
        guard count > 0 else { return .ended }
        for byte in chunk[..<count] {
          guard byte == 0x0a else {
            line.append(byte)
            guard line.count < lineByteLimit else { return .garbage }
            continue
          }
          switch CarrierReport(line, byteLimit: lineByteLimit) {
          case nil: return .garbage
          case .progress(let step): if !progress(step) { return .stopped }
          case .result(let result): return .result(result)
          }
          line = []
        }
      }
    }
    return .slow
  }

  /// Waits until the carrier has written something, or reads; returns false once the deadline has passed.
  private static func waits(for child: borrowing ChildProcess, isSending: Bool, by deadline: Deadline) -> Bool {
    while true {
      var waited: InlineArray<2, pollfd> = [
        pollfd(fd: child.output.number, events: CShort(POLLIN), revents: 0),
        pollfd(fd: isSending ? child.input.number : -1, events: CShort(POLLOUT), revents: 0),
      ]
      var span = waited.mutableSpan
      let ready = unsafe span.withUnsafeMutableBufferPointer {
        unsafe poll($0.baseAddress, 2, CInt(clamping: deadline.remainingMilliseconds))
      }
      // Also while it writes without end.
      if deadline.hasPassed { return false }
      if ready > 0 { return true }
    }
  }
}

/// The reasons why a carrier has no result. None of them is that of a service.
package enum CarrierProcessFault: Error {
  /// The program could not be started, for this `errno`.
  case notStarted(Int32)
  /// The program ended before it had a result.
  case ended(ChildEnd)
  /// The program wrote something that is not a report.
  case garbage
  /// The program took longer than its task.
  case slow
  /// The prover ended it.
  case stopped
}
