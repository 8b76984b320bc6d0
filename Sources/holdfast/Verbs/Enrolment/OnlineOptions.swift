import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastProver

/// The options for enrolling at an online service.
struct OnlineOptions: ParsableArguments {
  @Option(
    help:
      "A file with an invitation from the service's operator: the code, or the text of its QR code. - is standard input.",
    completion: .file())
  var invitation: String?

  @Option(
    help: "A file with the certificate authorities of the service. By default, those of this host.", completion: .file()
  )
  var ca: String?

  @Flag(help: "Trust the certificate authorities of this host, too, in addition to those of --ca.")
  var withSystemCa = false

  @Option(
    help: ArgumentHelp(
      "A pin of a public key in the service's chain of certificates, its own or an authority's: sha256//BASE64. May be repeated; one must be there. Pins that were given once are required from then on.",
      valueName: "pin"))
  var pin: [String] = []

  @Flag(help: "Replace the pins that were given before.")
  var replacePins = false

  @Option(help: "Seconds to wait for the service and for its operator's decision, 1 to 86400. By default, 60.")
  var timeout: UInt64?

  @Option(
    help: "The number of retries in a row if no service answers, 0 to 1000. By default, as many as --timeout allows.")
  var retries: UInt64?

  @Option(
    help: "The pause in seconds before a service is tried again, 0 to 3600. By default, up to 8 at random.")
  var pause: UInt64?

  /// Returns the services and everything that is needed to reach them; nil if `service` names a folder.
  ///
  /// Options that are not given are those that the state folder keeps, if it keeps them for these services.
  ///
  /// - Parameters:
  ///   - service: the value of `--service`.
  ///   - folder: the state folder.
  ///   - isInputTaken: whether another option reads standard input.
  func services(
    _ service: String?, in folder: ProverFolder, isInputTaken: Bool
  ) throws(Failure) -> OnlineServices? {
    guard service.map(ServiceAddress.hasScheme) ?? true else {
      guard invitation == nil, ca == nil, !withSystemCa, pin.isEmpty, !replacePins, timeout == nil, retries == nil,
        pause == nil
      else {
        throw Failure(
          .usage,
          "--invitation, --ca, --with-system-ca, --pin, --replace-pins, --timeout, --retries and --pause are for an online "
            + "service",
          hint: "name it by its URL: --service https://HOST")
      }
      return nil
    }
    guard invitation != "-" || !isInputTaken else {
      throw Failure(.usage, "standard input provides only one of descriptor and invitation, but is named for both")
    }
    guard timeout.map(CarrierTaskLine.timeoutRange.contains) ?? true else {
      throw Failure(.usage, "--timeout must be from 1 to 86400 seconds")
    }
    guard AttemptRule(retryCount: retries, pauseSeconds: pause) != nil else {
      throw Failure(.usage, "--retries must be from 0 to 1000, and --pause from 0 to 3600 seconds")
    }
    let named: [ServiceAddress]
    do throws(ServiceAddressFault) {
      named =
        try service.map { text throws(ServiceAddressFault) in
          try ServiceAddress.list(text)
        } ?? []
    } catch { throw Failure(error, in: "--service") }
    let invitation = try readInvitation()
    let known = try KnownServices(in: folder)
    let access = try access(to: named.isEmpty ? invitation?.services ?? [] : named, known)
    if let invited = invitation?.services, !invited.isEmpty,
      let other = access.addresses.first(where: { !invited.contains($0) })
    {
      throw Failure(
        .usage, "the invitation is not for \(other), so it was not sent there", hint: "leave out --service")
    }
    let isNamed = !named.isEmpty || invitation?.services.isEmpty == false
    return OnlineServices(
      access, isNamed: isNamed, invitation: invitation?.code, pins: try pins(access.addresses),
      isReplacingPins: replacePins)
  }

  private func readInvitation() throws(Failure) -> Invitation? {
    guard let invitation else { return nil }
    let secret = try SecretInput.read(invitation, of: "--invitation", limit: Invitation.maximumByteCount)
    do throws(InvitationFault) { return try Invitation(secret.bytes) } catch {
      throw Failure(error, in: SecretInput.name(invitation))
    }
  }

  /// Returns the services and how they are reached: by the options of this run, or else as the state folder keeps it.
  ///
  /// - Parameter named: The services that the command or its invitation names; none for those that the state folder keeps.
  private func access(to named: [ServiceAddress], _ known: KnownServices) throws(Failure) -> ServiceAccess {
    let kept = named.isEmpty ? known.usual : known.access(to: named)
    guard let addresses = named.isEmpty ? kept?.addresses : named else {
      throw Failure(
        .usage, "--service is missing",
        hint:
          "name the service's folder or URL; the text of an invitation's QR code names it too, and the state folder keeps the URL of the last enrolment"
      )
    }
    let authorities = ca ?? kept?.authorities
    guard !withSystemCa || authorities != nil else {
      throw Failure(.usage, "--with-system-ca requires --ca", hint: "without --ca, the authorities of this host count")
    }
    try checkAuthorities(authorities)
    return ServiceAccess(
      addresses, authorities: authorities,
      isTrustingSystem: withSystemCa || (ca == nil && kept?.isTrustingSystem == true),
      timeoutSeconds: timeout ?? kept?.timeoutSeconds,
      attempts: AttemptRule(
        retryCount: retries ?? kept?.attempts.retryCount, pauseSeconds: pause ?? kept?.attempts.pauseSeconds) ?? .usual)
  }

  private func pins(_ addresses: [ServiceAddress]) throws(Failure) -> [ServicePin] {
    guard !replacePins || !pin.isEmpty else {
      throw Failure(.usage, "--replace-pins requires the new pins", hint: "add --pin sha256//BASE64")
    }
    guard pin.isEmpty || addresses.allSatisfy(\.isEncrypted) else {
      throw Failure(.usage, "--pin requires https://", hint: "a service without TLS has no key to pin")
    }
    guard pin.count <= ServicePin.countLimit else {
      throw Failure(.usage, "--pin may be given at most \(ServicePin.countLimit) times")
    }
    var pins: [ServicePin] = []
    for text in pin {
      guard let known = ServicePin(text) else {
        throw Failure(
          .usage, "--pin must be sha256// and the base64 of 32 bytes",
          hint: "the service's operator publishes it; docs/service.md shows how to compute it")
      }
      if !pins.contains(known) { pins.append(known) }
    }
    return pins
  }
}

/// Checks that a file with certificate authorities can be read, so that the message about it does not come from the carrier.
func checkAuthorities(_ path: String?) throws(Failure) {
  guard let path else { return }
  do throws(FileError) { _ = try Files.readFile(at: path, limit: 1 << 20) } catch { throw Failure(error) }
}

/// The online services of a run, and everything that is needed to reach them.
final class OnlineServices {
  let access: ServiceAccess
  /// Whether the command or its invitation names the services; otherwise they are those of the state folder.
  let isNamed: Bool
  /// The secret code of the invitation.
  let invitation: String?
  /// The pins of the command line, which apply to each service.
  let pins: [ServicePin]
  let isReplacingPins: Bool

  init(
    _ access: ServiceAccess, isNamed: Bool = false, invitation: String? = nil, pins: [ServicePin] = [],
    isReplacingPins: Bool = false
  ) {
    (self.access, self.isNamed, self.invitation) = (access, isNamed, invitation)
    (self.pins, self.isReplacingPins) = (pins, isReplacingPins)
  }

  /// The seconds for an enrolment.
  var timeoutSeconds: UInt64 { access.timeoutSeconds ?? 60 }

  /// Returns the services with the pins that each must have: those of the command line, else those that the state folder
  /// keeps, which must agree.
  func pinned(in folder: ProverFolder) throws(Failure) -> [PinnedService] {
    let kept = try KnownServices(in: folder)
    var services: [PinnedService] = []
    for address in access.addresses {
      let known = kept.pins(of: address)
      if !pins.isEmpty, !known.isEmpty, !isReplacingPins,
        !known.allSatisfy(pins.contains) || !pins.allSatisfy(known.contains)
      {
        throw Failure(otherPinsKeptFor: address, in: folder.path)
      }
      services.append(PinnedService(address, pins: pins.isEmpty ? known : pins))
    }
    return services
  }

  /// Keeps the pins of the command line, once a service has shown that it has one of them.
  ///
  /// - Parameter isEnrolled: Whether a service has issued a token: then services that were named are those of later commands that
  ///   name none.
  func keep(in folder: ProverFolder, isEnrolled: Bool = false) throws(Failure) {
    let usual = isEnrolled && isNamed ? access.fromRoot : nil
    guard !pins.isEmpty || usual != nil else { return }
    do throws(KnownServicesFault) {
      try folder.updateServices { known in
        if !pins.isEmpty { known.setPins(pins, of: access.addresses) }
        if let usual { known.usual = usual }
      }
    } catch { throw Failure(error, in: folder.path) }
  }
}

extension KnownServices {
  /// Reads the services that a state folder keeps.
  init(in folder: ProverFolder) throws(Failure) {
    do throws(KnownServicesFault) { self = try folder.knownServices() } catch { throw Failure(error, in: folder.path) }
  }
}

extension ServiceAccess {
  /// The same for commands that run in any folder; nil if the present folder has no name that a file could keep.
  fileprivate var fromRoot: ServiceAccess? {
    guard let authorities, !authorities.hasPrefix("/") else { return self }
    guard let buffer = unsafe getcwd(nil, 0) else { return nil }
    defer { unsafe free(buffer) }
    guard let folder = unsafe String(validatingCString: buffer) else { return nil }
    var access = self
    access.authorities = "\(folder)/\(authorities)"
    return access.authorities?.utf8.count ?? 0 < Int(PATH_MAX) ? access : nil
  }
}
