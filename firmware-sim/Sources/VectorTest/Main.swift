import BoardQuestions
import HoldfastBoard
import HoldfastCore

/// Answers questions about test vectors, one after another, without end.
@c(firmware_main)
func main() -> Never {
  Console.start()
  Console.write("Holdfast vector test\n")
  var link = PeerLink()
  var question = BoardQuestion()
  var answer = BoardAnswer()
  while true {
    question.receive(from: &link)
    answer.begin(shift: question.shift)
    do throws(Refused) {
      switch question.operation {
      case 0..<16: try answerDevice(question, &answer)
      case 16..<32: try answerRound(question, &answer)
      case 32..<48: try answerMessage(question, &answer)
      default: try answerCode(question, &answer)
      }
    } catch {
      answer.isSuccess = false
    }
    answer.send(to: &link)
  }
}

/// The refusal of a question's input, as many vectors expect.
struct Refused: Error {}

/// Returns the bytes of a field.
///
/// - Throws: ``Refused`` for another length.
func fixed<Kind, let count: Int>(_ bytes: Span<UInt8>) throws(Refused) -> TypedBytes<Kind, count> {
  guard let fixed = TypedBytes<Kind, count>(bytes) else { throw Refused() }
  return fixed
}

/// Returns the bytes of a field that holds a key or a measurement.
///
/// - Throws: ``Refused`` for another length.
func secret<let count: Int>(_ bytes: Span<UInt8>) throws(Refused) -> Secret<count> {
  guard let secret = Secret<count>(copying: bytes) else { throw Refused() }
  return secret
}
