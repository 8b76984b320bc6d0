import BoardQuestions
import HoldfastBoard
import HoldfastCore

/// Answers questions about the board and its cryptography, one after another, without end.
@c(firmware_main)
func main() -> Never {
  Console.start()
  Console.write("Holdfast board test\n")
  let clock = BoardClock()
  var link = PeerLink()
  let entropy = SimulatedEntropy.take()
  var flash = BoardFlash()
  var question = BoardQuestion()
  var answer = BoardAnswer()
  while true {
    question.receive(from: &link)
    answer.begin(shift: question.shift)
    let begun = clock.ticks()
    do throws(OperationFailure) {
      switch question.operation {
      case 0..<32: try answerCryptography(question, &answer, clock)
      case 32..<48: try answerFlash(question, &answer, &flash)
      default: try answerBoard(question, &answer, clock, entropy)
      }
    } catch {
      answer.isSuccess = false
    }
    if answer.ticks == 0 { answer.ticks = clock.ticks() - begun }
    answer.send(to: &link)
  }
}

/// The failure of an operation. Some questions expect it.
struct OperationFailure: Error {}
