import BoardQuestions
import CBearSSL
import CBoardTest
import HoldfastBoard
import HoldfastCore
import HoldfastFirmware

/// Answers the operations from 48 on, which are about the board.
func answerBoard(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ clock: BoardClock, _ entropy: borrowing Secret<64>
) throws(OperationFailure) {
  switch question.operation {
  case 48: answer.append(UInt32(truncatingIfNeeded: clock.monotonicMilliseconds()))
  case 49:
    answer.append(UInt32(MainStack.usedByteCount))
    answer.append(UInt32(MainStack.byteCount))
  case 50: entropy.withBytes { answer.set($0) }
  // The entropy was taken at the start, so nothing must be left.
  case 51: SimulatedEntropy.take().withBytes { answer.set($0) }
  case 52: layouts(&answer)
  case 53: fail(question.integer(0))
  case 54: break
  default: throw OperationFailure()
  }
}

/// Appends the sizes of the types that Swift and BearSSL share, each as clang computes it and as BearSSL's compiler does.
private func layouts(_ answer: inout BoardAnswer) {
  let theirs = unsafe board_test_layouts()
  let ours: InlineArray<5, Int> = unsafe [
    MemoryLayout<br_hash_compat_context>.size, MemoryLayout<br_hmac_context>.size,
    MemoryLayout<br_aesctr_drbg_context>.size, MemoryLayout<br_ec_public_key>.size, MemoryLayout<br_ec_impl>.size,
  ]
  for index in ours.indices {
    answer.append(UInt32(ours[index]))
    unsafe answer.append(theirs[index])
  }
}

/// Causes the fault that is asked for.
private func fail(_ way: UInt32) {
  switch way {
  case 0: board_test_read_nowhere()
  case 1: board_test_undefined()
  case 2: _ = overflow(1)
  case 4: board_test_write_code()
  case 5: board_test_run_memory()
  default: preconditionFailure()
  }
}

@inline(never)
private func overflow(_ depth: UInt32) -> UInt32 {
  let room = InlineArray<64, UInt32>(repeating: depth)
  return depth == 0 ? 0 : overflow(depth &+ 1) &+ room[Int(depth & 63)]
}

/// Answers the operations 32 to 47, which are about the flash.
func answerFlash(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ flash: inout BoardFlash
) throws(OperationFailure) {
  let offset = Int(Int32(bitPattern: question.integer(0)))
  do throws(FlashFailure) {
    switch question.operation {
    case 32: answer.append(flash.word(at: offset))
    case 33: answer.set(flash.bytes.extracting(offset..<offset + Int(question.integer(1))))
    case 34: try flash.program(question.integer(1), at: offset)
    case 35: try flash.erasePage(at: offset)
    default: throw FlashFailure()
    }
  } catch {
    throw OperationFailure()
  }
}
