import HoldfastCore
import HoldfastFormats
import HoldfastOnline

extension HoldfastClient {
  /// The id that the account gives this host, in padded base64, as the claim `did` of its tokens has it: of the last answer, or of
  /// an earlier run; nil if there was none.
  ///
  /// Source: Approov, `getDeviceID`.
  public var deviceID: String? { state.withLock { $0.deviceID }.map { paddedBase64($0.bytes) } }

  /// Returns the newest configuration of the account, a signed text, or the initial one if none was received. Results of fetches
  /// do not announce it any more.
  ///
  /// If no service has answered this client yet, the call asks for the newest one, for at most two seconds. The client stores
  /// configurations itself, so that an app need not keep the text.
  ///
  /// Source: Approov, `fetchConfig`.
  public func fetchConfig() -> String {
    if !state.withLock({ $0.hasAnswer }) { updateConfiguration(announcing: false) }
    return state.withLock { state in
      state.isConfigurationChanged = false
      return state.configuration?.text ?? account.text
    }
  }

  /// Returns the pins of each API domain: base64 of SHA-256 over the SubjectPublicKeyInfo of a key that a chain of certificates
  /// must have. The pins of `*` count for domains that have none. The pins count as read.
  ///
  /// Source: Approov, `getPins` with `public-key-sha256`; RFC 7469 §2.4.
  public func pins() -> [String: [String]] {
    Dictionary(uniqueKeysWithValues: readPins().map { ($0.domain, $0.pins.map(\.base64)) })
  }

  /// Returns the pins that count for a domain: its own, or else those of `*`; none if connections to it are not pinned. The pins
  /// count as read.
  public func pins(for domain: String) -> [String] { pinned(for: domain).map(\.base64) }

  /// The same, with the bytes of the digests.
  func pinned(for domain: String) -> [ServicePin] {
    let pins = readPins()
    let name = APIDomain(domain)?.name
    return (pins.first { $0.domain == name } ?? pins.first { $0.domain == "*" })?.pins ?? []
  }

  /// The pins as a JSON object, with an array for each domain. The pins count as read.
  ///
  /// Source: Approov, `getPinsJSON`.
  public func pinsJSON() -> String {
    let members = readPins().map { ($0.domain, JSONValue.array($0.pins.map { .string($0.base64) })) }
    return String(decoding: JSONValue.object(members).compact(), as: UTF8.self)
  }

  private func readPins() -> [(domain: String, pins: [ServicePin])] {
    state.withLock { state in
      state.readPins = state.configuration?.revision ?? 0
      return state.configuration?.pins ?? []
    }
  }

  /// Binds the tokens of later fetches to data of the app: the claim `pay` has its SHA-256 digest. Other data than before makes the
  /// next fetch attest the app anew. The data is hashed here, and sent nowhere.
  ///
  /// Source: Approov, `setDataHashInToken`.
  ///
  /// - Parameter data: the data; nil for none.
  public func setDataHashInToken(_ data: [UInt8]?) {
    // Hashing bytes in memory does not fail.
    let digest = data.flatMap { try? sha256($0.span) }
    change { $0.dataHash = digest }
  }

  /// The same for the UTF-8 bytes of a text.
  public func setDataHashInToken(_ data: String) { setDataHashInToken(Array(data.utf8)) }

  /// Sets a text about the app or its user that operators see with the next attestation. Other characters than printable ASCII are
  /// left out, and a text that still has more than 128 changes nothing.
  ///
  /// The text `$error` reports that a measurement changed unexpectedly: the next attestation also names each component that differs
  /// from the baseline of an enrolment.
  ///
  /// Source: Approov, `setUserProperty`; "Getting a Measurement Proof".
  ///
  /// - Parameter property: the text; nil for none.
  public func setUserProperty(_ property: String?) {
    let bytes = (property ?? "").utf8.filter { (0x20...0x7e).contains($0) }
    guard let text = BoundedText<128>(bytes.span) else { return }
    change { statements in
      statements.userProperty = text.isEmpty ? nil : text
      statements.reportsChanges = property == "$error"
    }
  }

  /// Sets the account's development key, with which an app passes that is not approved. Only apps that are being developed have it.
  ///
  /// Source: Approov, `setDevKey`.
  ///
  /// - Parameter key: 26 characters of base32, as `holdfast-service development-key` shows them; nil for none.
  /// - Throws: ``ClientError/developmentKey``.
  public func setDevelopmentKey(_ key: String?) throws(ClientError) {
    let parsed = key.flatMap { DevelopmentKey($0) }
    guard key == nil || parsed != nil else { throw .developmentKey }
    change { $0.developmentKey = parsed }
  }

  /// Changes what goes into attestations. Only a real change makes the next fetch attest the app anew.
  private func change(_ body: (inout AttestationStatements) -> Void) {
    state.withLock { state in
      let before = state.statements
      body(&state.statements)
      if !state.statements.isSame(as: before) { state.beginAnew() }
    }
  }
}

extension ServicePin {
  /// The base64 of the digest.
  fileprivate var base64: String { String(description.dropFirst("sha256//".count)) }
}
