import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastProver

extension Failure {
  /// Creates the failure for a list of services that cannot be used.
  init(_ fault: ServiceAddressFault, in place: String) {
    switch fault {
    case .malformed:
      self.init(.usage, "\(place) names no service", hint: "a service is a URL such as https://a.example")
    case .scheme: self.init(.usage, "\(place) must name a service by https://")
    case .notEncrypted:
      self.init(
        .usage, "\(place) must name a service by https://, because evidence is secret",
        hint: "http:// is only for a service on this host: 127.0.0.1, ::1 or localhost")
    case .extraParts:
      self.init(
        .usage, "\(place) must name a service without user, path or query", hint: "such as https://a.example:8443")
    case .tooMany: self.init(.usage, "\(place) may name at most \(ServiceAddress.countLimit) services")
    case .repeated(let address): self.init(.usage, "\(place) names \(address) twice")
    }
  }

  /// Creates the failure for an invitation that cannot be used. It never repeats the code.
  init(_ fault: InvitationFault, in name: String) {
    switch fault {
    case .malformed:
      self.init(
        .malformed, "\(name) contains no invitation",
        hint: "it is a code of 20 letters and digits, or the text of a QR code that begins with holdfast-invitation:")
    case .otherVersion: self.init(.malformed, "\(name) contains an invitation of another version")
    case .service(let fault):
      let failure = Failure(fault, in: "the invitation in \(name)")
      self.init(.malformed, failure.message, hint: "ask the service's operator for another one")
    }
  }

  /// Creates the failure for services that a state folder cannot tell or keep.
  init(_ fault: KnownServicesFault, in folder: String) {
    switch fault {
    case .damaged(let path, let mistake):
      self.init(
        code: .servicesDamaged, "\(mistake.text(in: path)); so the pins of services are unknown, and nothing was sent",
        hint: "correct it, or remove it and give service and pins again: holdfast enroll --service URL --pin PIN")
    case .folder(let fault): self.init(fault, folder: folder)
    }
  }

  /// Creates the failure for pins that differ from those that the state folder keeps.
  init(otherPinsKeptFor address: ServiceAddress, in folder: String) {
    self.init(
      code: .otherPins, "\(folder) keeps other pins for \(address), so nothing was sent",
      hint: "if the service's operator confirms the new pins, add --replace-pins")
  }

  /// Creates the failure for a request that no operator has decided in time.
  init(waitingFor request: OnlineRequest, device: DeviceID) {
    self.init(
      code: .requestWaits,
      "the operator of \(request.service) has not decided yet about request \(request.id) for device \(hexadecimal(device))",
      hint: "the same command continues it, also tomorrow; a longer --timeout waits for the decision")
  }
}

extension Failure {
  /// Creates the failure of an exchange with services.
  ///
  /// - Parameter folder: The state folder, if its pins counted; nil if those of the command did.
  init(_ failure: CarrierFailure, pinsIn folder: String?) {
    let service = failure.service ?? "the service"
    let status = failure.status.map { " (status \($0))" } ?? ""
    switch failure.kind {
    case .refused:
      let reasons = failure.reasons.isEmpty ? status : " (\(failure.reasons.joined(separator: ", ")))"
      let texts = [failure.title, failure.detail].compactMap { $0?.withoutEnd }
      self.init(
        code: .serviceRefused, (["\(service) refuses" + reasons] + texts).joined(separator: ": "),
        hint: Self.hint(of: failure))
    case .requestRefused:
      self.init(
        code: .requestRefused,
        "the operator of \(service) refused the request" + (failure.detail.map { ": \($0.withoutEnd)" } ?? ""))
    case .requestExpired:
      self.init(
        code: .requestExpired, "the operator of \(service) did not decide about the request in time",
        hint: "the same command makes a new request")
    case .noName: self.init(code: .serviceUnreachable, "\(service): there is no such host", hint: Self.unreachable)
    case .noConnection:
      self.init(code: .serviceUnreachable, "\(service): there is no connection", hint: Self.unreachable)
    case .timedOut: self.init(code: .serviceUnreachable, "\(service) took too long", hint: Self.unreachable)
    case .noTLS:
      self.init(
        code: .noTLS, "\(service): there is no connection by TLS 1.3", hint: "the service must offer TLS 1.3")
    case .notNow: self.init(code: .serviceNotNow, "\(service) cannot answer now\(status)", hint: "try again later")
    case .wrongPin:
      self.init(
        code: .wrongPin, "no key in the chain of certificates of \(service) is a pinned one, so nothing was sent to it",
        hint: "if the service's operator confirms a new key, give its pin"
          + (folder == nil
            ? ": --pin PIN" : ", to replace the one that the state folder keeps: --pin PIN --replace-pins"))
    case .expiredCertificate, .certificateOfAnotherName, .untrustedCertificate:
      self.init(certificateOf: failure, service)
    case .badAuthorities:
      self.init(code: .badAuthorities, "the file of --ca contains no certificates", hint: "it must be in PEM")
    case .redirect:
      self.init(
        code: .notAService, "\(service) redirects elsewhere\(status), which is not followed",
        hint: "is that the right address?"
      )
    case .malformedAnswer:
      self.init(
        code: .notAService,
        "\(service) does not answer as a Holdfast service\(status)" + (failure.detail.map { ": \($0)" } ?? ""),
        hint: "is that the right address?")
    case .tooLongAnswer:
      self.init(code: .notAService, "the answer of \(service) is too long", hint: "is that the right address?")
    case .fault: self.init(.fault, "holdfast-carrier failed", hint: Self.reinstall)
    }
  }

  private init(certificateOf failure: CarrierFailure, _ service: String) {
    let text =
      switch failure.kind {
      case .expiredCertificate: "has expired, or is not valid yet"
      case .certificateOfAnotherName: "is for another name"
      default: "comes from no trusted authority"
      }
    self.init(
      code: .badCertificate, "the certificate of \(service) \(text), so nothing was sent to it",
      hint: failure.kind == .expiredCertificate
        ? "is this host's clock right? If so, ask the service's operator"
        : "is that the right address? A service must send its intermediate certificates, and one with its own authority needs --ca FILE"
    )
  }

  private static let unreachable = "check the address and this host's network, and try again"
  private static let reinstall = "install holdfast and holdfast-carrier of the same version"

  private static func hint(of failure: CarrierFailure) -> String? {
    let hint =
      failure.responseCode.map { "the service's operator finds the reasons by the code \($0)" }
      ?? failure.requestID.map { "the service's operator finds the request in its log by \($0)" }
    return [failure.help?.withoutEnd, hint].compactMap { $0 }.joined(separator: "; ")
  }
}

extension String {
  /// The text of a service without punctuation at its end, because more follows.
  fileprivate var withoutEnd: String {
    var bytes = utf8[...]
    while let last = bytes.last, [UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: ";"), 0x20].contains(last) {
      bytes.removeLast()
    }
    return String(Substring(bytes))
  }
}

extension Failure {
  /// Creates the failure for a carrier that is at none of its places.
  init(missingCarrier places: [String]) {
    self.init(
      code: .carrierMissing,
      "the program holdfast-carrier is missing, without which there is no enrolling over the network",
      hint: "install it as " + places.joined(separator: " or "))
  }

  /// Creates the failure for a carrier without a result.
  init(_ fault: CarrierProcessFault, carrier path: String) {
    switch fault {
    case .notStarted(let number):
      self.init(.unavailable, "\(path) could not be started: system error \(number)", hint: Self.reinstall)
    case .ended(.exited(let status)):
      self.init(.fault, "\(path) ended before it had a result: exit status \(status)", hint: Self.reinstall)
    case .ended(.signal(let number)):
      self.init(.fault, "\(path) ended before it had a result: signal \(number)", hint: "try again")
    case .ended(.unknown), .stopped: self.init(.fault, "\(path) ended before it had a result")
    case .garbage: self.init(.fault, "\(path) did not answer as it should", hint: Self.reinstall)
    case .slow: self.init(.fault, "\(path) did not end in time, and was ended")
    }
  }
}
