import BoardQuestions
import HoldfastBoard
import HoldfastFirmware

/// Operations 32 to 47.
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
