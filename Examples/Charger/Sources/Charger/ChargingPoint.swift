import HoldfastCore
import Synchronization

/// The machine that accepted commands move. All connections share it.
final class ChargingPoint: Actuator, Sendable {
  private let limit = Mutex(0)

  func carriesOut(_ command: BoundedText<32>) -> Bool { ["charge", "stop", "status"].contains(command.description) }

  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    let amperes: Int
    switch request.command.description {
    case "charge":
      guard request.parameterCount == 1, let number = Int(request.parameter(0).description), 6...32 ~= number else {
        throw ActuatorFailure(.failed, text: BoundedText("6 to 32 amperes"))
      }
      limit.withLock { $0 = number }
      amperes = number
    case "stop":
      limit.withLock { $0 = 0 }
      amperes = 0
    default: amperes = limit.withLock { $0 }
    }
    do throws(EncodingFault) { try result.append(Array("\(amperes) A".utf8).span) } catch { throw ActuatorFailure() }
  }
}
