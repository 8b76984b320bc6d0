import ArgumentParser
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
  /// - Parameters:
  ///   - service: the value of `--service`.
  ///   - isInputTaken: whether another option reads standard input.
  func services(_ service: String?, isInputTaken: Bool) throws(Failure) -> OnlineServices? {
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
    let timeout = timeout ?? 60
    guard CarrierTaskLine.timeoutRange.contains(timeout) else {
      throw Failure(.usage, "--timeout must be from 1 to 86400 seconds")
    }
    guard let attempts = AttemptRule(retryCount: retries, pauseSeconds: pause) else {
      throw Failure(.usage, "--retries must be from 0 to 1000, and --pause from 0 to 3600 seconds")
    }
    guard !withSystemCa || ca != nil else {
      throw Failure(.usage, "--with-system-ca requires --ca", hint: "without --ca, the authorities of this host count")
    }
    let named: [ServiceAddress]
    do throws(ServiceAddressFault) {
      named =
        try service.map { text throws(ServiceAddressFault) in
          try ServiceAddress.list(text)
        } ?? []
    } catch { throw Failure(error, in: "--service") }
    let invitation = try readInvitation()
    let addresses = named.isEmpty ? invitation?.services ?? [] : named
    guard !addresses.isEmpty else {
      throw Failure(
        .usage, "--service is missing",
        hint: "name the service's folder or URL; the text of an invitation's QR code names it too")
    }
    if let invited = invitation?.services, !invited.isEmpty,
      let other = addresses.first(where: { !invited.contains($0) })
    {
      throw Failure(
        .usage, "the invitation is not for \(other), so it was not sent there", hint: "leave out --service")
    }
    return OnlineServices(
      addresses: addresses, invitation: invitation?.code, authorities: try authorities(),
      isTrustingSystem: withSystemCa, pins: try pins(addresses), isReplacingPins: replacePins, attempts: attempts,
      timeoutSeconds: timeout)
  }

  private func readInvitation() throws(Failure) -> Invitation? {
    guard let invitation else { return nil }
    let secret = try SecretInput.read(invitation, of: "--invitation", limit: Invitation.maximumByteCount)
    do throws(InvitationFault) { return try Invitation(secret.bytes) } catch {
      throw Failure(error, in: SecretInput.name(invitation))
    }
  }

  /// Checks that the file can be read, so that the message about it does not come from the carrier.
  private func authorities() throws(Failure) -> String? {
    guard let ca else { return nil }
    do throws(FileError) { _ = try Files.readFile(at: ca, limit: 1 << 20) } catch { throw Failure(error) }
    return ca
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

/// The online services of a run, and everything that is needed to reach them.
final class OnlineServices {
  let addresses: [ServiceAddress]
  /// The secret code of the invitation.
  let invitation: String?
  let authorities: String?
  /// Whether the authorities of this host count, too, if there is a file.
  let isTrustingSystem: Bool
  /// The pins of the command line, which apply to each service.
  let pins: [ServicePin]
  let isReplacingPins: Bool
  let attempts: AttemptRule
  let timeoutSeconds: UInt64

  init(
    addresses: [ServiceAddress], invitation: String?, authorities: String?, isTrustingSystem: Bool = false,
    pins: [ServicePin], isReplacingPins: Bool, attempts: AttemptRule = .usual, timeoutSeconds: UInt64
  ) {
    (self.addresses, self.invitation, self.authorities) = (addresses, invitation, authorities)
    (self.pins, self.isReplacingPins, self.timeoutSeconds) = (pins, isReplacingPins, timeoutSeconds)
    (self.isTrustingSystem, self.attempts) = (isTrustingSystem, attempts)
  }

  /// Returns the services with the pins that each must have: those of the command line, else those that the state folder
  /// keeps, which must agree.
  func pinned(in folder: ProverFolder) throws(Failure) -> [PinnedService] {
    let kept: JSONValue
    do throws(StateFolderFault) { kept = try folder.servicePins() } catch { throw Failure(error, ofPinsIn: folder) }
    var services: [PinnedService] = []
    for address in addresses {
      let known = kept[address.description]?.elements?.compactMap { $0.text.flatMap { ServicePin($0) } } ?? []
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
  func keepPins(in folder: ProverFolder) throws(Failure) {
    guard !pins.isEmpty else { return }
    do throws(StateFolderFault) {
      try folder.keep(
        pins: .array(pins.map { .string($0.description) }), of: addresses.map(\.description))
    } catch { throw Failure(error, ofPinsIn: folder) }
  }
}
