import Glibc
import HoldfastOnline

/// A way to make calls to the account's services.
package protocol ServiceCaller: Sendable {
  /// Makes a call at the first service that answers.
  ///
  /// - Parameters:
  ///   - call: the operation, with the body of its request.
  ///   - services: the services in the order in which they are tried.
  ///   - timeoutSeconds: the time for all attempts.
  func make(
    _ call: ServiceCall, at services: [PinnedService], timeoutSeconds: UInt64
  ) throws(CallFailure) -> ServiceAnswer
}

/// The reason why a call has no answer.
package enum CallFailure: Error {
  /// The service's, or that of the way to it.
  case service(CarrierFailure)
  /// The carrier's.
  case carrier(CarrierProcessFault)
}

/// Calls through the separate program `holdfast-carrier`, so that neither libcurl nor what a server sends it is in the app.
package struct CarrierCaller: ServiceCaller {
  /// The path of the program.
  private let path: String
  /// The file with the only certificate authorities that count; nil for those of the system.
  private let authorities: String?

  /// The time in which a carrier ends after that of its task, in milliseconds. It is short, because an app waits.
  private static let graceMilliseconds = 250

  /// Names the program, and starts nothing.
  package init(path: String, authorities: String?) { (self.path, self.authorities) = (path, authorities) }

  package func make(
    _ call: ServiceCall, at services: [PinnedService], timeoutSeconds: UInt64
  ) throws(CallFailure) -> ServiceAnswer {
    let task = CarrierTaskLine.encode(
      services: services, authorities: authorities, timeoutSeconds: timeoutSeconds, call: call)
    let result: CarrierResult
    do throws(CarrierProcessFault) {
      // The configuration, for which the start of an app waits, has no time beyond that of its task.
      result = try CarrierProcess.carryOut(
        task, by: path, timeoutSeconds: timeoutSeconds,
        graceMilliseconds: call.operation == .configuration ? 0 : Self.graceMilliseconds,
        lineByteLimit: call.operation.answerByteLimit + 1, progress: { _ in true })
    } catch { throw .carrier(error) }
    switch result {
    case .answer(let answer): return answer
    case .failure(let failure): throw .service(failure)
    case .token, .waiting: throw .carrier(.garbage)
    }
  }

  /// Returns the path of the carrier: in the folder of this program, else in `../libexec/holdfast` from there, else in
  /// `/usr/libexec/holdfast`. No variable of the environment counts.
  static var usualPath: String {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink("/proc/self/exe", &target, target.count - 1)
    let program = String(decoding: target.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let folder = program.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(program[..<$0]) } ?? ""
    let places = [folder, "\(folder)/../libexec/holdfast", "/usr/libexec/holdfast"].map { "\($0)/holdfast-carrier" }
    return places.first { unsafe access($0, X_OK) == 0 } ?? places[0]
  }
}
