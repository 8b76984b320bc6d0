import BoardQuestions
import HoldfastCore
import HoldfastReplay

/// Operations 32 to 47. The field is a message or a part of one, and the answer what was read of it, written again.
@inline(never)
func answerMessage(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  var written = MessageBuffer()
  do throws(EncodingFault) {
    switch question.operation {
    case 32: try WrittenAgain.challenge(question.field(0), into: &written)
    case 33: try WrittenAgain.answer(question.field(0), into: &written)
    case 34: try WrittenAgain.verdict(question.field(0), into: &written)
    case 35: try WrittenAgain.request(question.field(0), into: &written)
    default: throw .unexpected
    }
  } catch { throw Refused() }
  answer.set(written.bytes)
}
