import HoldfastCore
import HoldfastOpenSSL

/// The whole state as one armoured line: `hfstate1` followed by the base64url encoding that docs/authenticator.md
/// describes.
package enum StateString {
  static let prefix = Array("hfstate1".utf8)
  /// The largest length of the line, in bytes without white space.
  static let maximumByteCount = 1 << 20

  /// The length of the header, in bytes: cost, salt and nonce.
  private static let headerByteCount = 3 + 16 + 12
  private static let tagByteCount = 16
  private static let checkByteCount = 4

  /// Encrypts `state` under a passphrase.
  static func seal<Random: RandomSource & ~Copyable>(
    _ state: borrowing SecretBytes, under passphrase: borrowing Passphrase, cost: ScryptCost, random: inout Random,
    using cryptography: inout OpenSSLCryptography
  ) throws(AuthenticatorFault) -> [UInt8] {
    var body = [UInt8(cost.logarithm), UInt8(cost.blockSize), UInt8(cost.parallelization)]
    do throws(RandomFailure) {
      let fresh: FixedBytes<28> = try random.fixedBytes()
      body.append(fresh.bytes)
    } catch { throw .failed }
    let header = body
    var message: [UInt8] = []
    message.append(state.bytes)
    var tag = AuthenticationTag()
    do throws(CryptographyFailure) {
      let key = try key(header, passphrase, cost)
      let data = prefix + header
      var span = message.mutableSpan
      try cryptography.aes256GCMSeal(
        key: key, nonce: header.span.extracting(last: 12), authenticating: data.span, message: &span, tag: &tag)
      body += message + [UInt8](tag.bytes)
      body += try check(body)
    } catch { throw .failed }
    var text = prefix
    text.append(asBase64URL: body.span)
    return text
  }

  /// Decrypts a line, which may have been wrapped.
  ///
  /// - Throws: `malformedState`, `wrongPassphrase`, `failed`.
  package static func open(
    _ text: Span<UInt8>, under passphrase: borrowing Passphrase, using cryptography: inout OpenSSLCryptography
  ) throws(AuthenticatorFault) -> SecretBytes {
    let (body, cost) = try parse(text)
    let header = Array(body[..<headerByteCount])
    guard let tag = AuthenticationTag(body.span.extracting(last: tagByteCount)) else { throw .malformedState }
    let key: Secret<32>
    do throws(CryptographyFailure) { key = try self.key(header, passphrase, cost) } catch { throw .failed }
    var message = SecretBytes(copying: body.span.extracting(headerByteCount..<body.count - tagByteCount))
    do throws(CryptographyFailure) {
      let data = prefix + header
      var span = message.mutableBytes
      try cryptography.aes256GCMOpen(
        key: key, nonce: header.span.extracting(last: 12), authenticating: data.span, message: &span, tag: tag)
    } catch { throw .wrongPassphrase }
    return message
  }

  /// Checks that `text` is a state string without typing errors. No passphrase is needed.
  ///
  /// - Throws: `malformedState`.
  static func check(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    _ = try parse(text)
  }

  /// Parses a line into the header, ciphertext and tag, and reads the cost from the header.
  private static func parse(_ text: Span<UInt8>) throws(AuthenticatorFault) -> (body: [UInt8], cost: ScryptCost) {
    var line: [UInt8] = []
    for index in text.indices where ![0x20, 0x09, 0x0a, 0x0d].contains(text[index]) { line.append(text[index]) }
    guard line.count <= maximumByteCount, line.starts(with: prefix) else { throw .malformedState }
    var body: [UInt8] = []
    var position = prefix.count
    while position < line.count {
      // 64 characters encode 48 bytes; only the last group may be shorter.
      let end = min(position + 64, line.count)
      var part = ByteBuffer<48>()
      do throws(EncodingFault) { try part.append(base64URL: line.span.extracting(position..<end)) } catch {
        throw .malformedState
      }
      body.append(part.bytes)
      position = end
    }
    guard body.count >= headerByteCount + tagByteCount + checkByteCount else { throw .malformedState }
    let given = Array(body.suffix(checkByteCount))
    body.removeLast(checkByteCount)
    let expected: [UInt8]
    do throws(CryptographyFailure) { expected = try check(body) } catch { throw .failed }
    guard given == expected,
      let cost = ScryptCost(logarithm: Int(body[0]), blockSize: Int(body[1]), parallelization: Int(body[2]))
    else { throw .malformedState }
    return (body, cost)
  }

  /// Returns the first bytes of a hash. They detect typing errors without a key.
  private static func check(_ body: [UInt8]) throws(CryptographyFailure) -> [UInt8] {
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 state string")
    hash.append(body.span)
    let digest: Digest = try hash.finish()
    return [UInt8](digest.bytes.extracting(first: checkByteCount))
  }

  private static func key(
    _ header: [UInt8], _ passphrase: borrowing Passphrase, _ cost: ScryptCost
  ) throws(CryptographyFailure) -> Secret<32> {
    var key = Secret<32>()
    let salt = header.span.extracting(3..<19)
    let password = passphrase.bytes.bytes
    try key.withMutableBytes { (key: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try Scrypt.derive(password: password, salt: salt, cost: cost, into: &key)
    }
    return key
  }
}

extension StoredRecord {
  private static let fieldCount = 21

  /// Writes the record as an array of all its columns. The last one, the owner's demand, is omitted if there is none; earlier
  /// versions refuse a record that has it.
  package func encode(into bytes: inout [UInt8]) {
    bytes.appendCBOR(array: Self.fieldCount + (record.demand == nil ? 0 : 1))
    bytes.appendCBOR(text: Array(record.user.utf8).span)
    bytes.appendCBOR(unsigned: UInt64(record.index))
    bytes.appendCBOR(unsigned: UInt64(record.purpose.rawValue))
    bytes.appendCBOR(text: Array(record.issuer.utf8).span)
    bytes.appendCBOR(optional: record.deviceID.map { [UInt8]($0.bytes) })
    record.method.encode(into: &bytes)
    bytes.appendCBOR(unsigned: record.nextCounter)
    bytes.appendCBOR(unsigned: record.acknowledgedCounter)
    bytes.appendCBOR(integer: record.clockOffsetSeconds)
    bytes.appendCBOR(optional: record.lastTimeStep)
    bytes.appendCBOR(optional: record.lastSynchronised)
    bytes.appendCBOR(optional: record.lookAheadWindow)
    bytes.appendCBOR(optional: record.sealFieldByteLimit.map(UInt64.init))
    bytes.appendCBOR(unsigned: record.protectionGroup)
    bytes.appendCBOR(unsigned: record.isConfirmed ? 1 : 0)
    (secret?.protection ?? .none).encode(into: &bytes)
    if let secret { secret.bytes.withBytes { bytes.appendCBOR(bytes: $0) } } else { bytes.appendCBORNull() }
    bytes.appendCBOR(unsigned: UInt64(record.change.rawValue))
    bytes.appendCBOR(optional: undo)
    bytes.appendCBOR(optional: clientChallenge.map { Array($0.utf8) })
    bytes.appendCBOR(optional: record.changePosition)
    if let demand = record.demand { bytes.appendCBOR(unsigned: demand.stored) }
  }

  /// Reads the encoding that ``encode(into:)`` writes.
  package init(_ reader: inout CBORReader) throws(EncodingFault) {
    let count = try reader.arrayHead()
    guard count == Self.fieldCount || count == Self.fieldCount + 1 else { throw .unexpected }
    let user = try reader.text(1...Credential.maximumUserByteCount)
    let index = try reader.unsigned()
    let purpose = try reader.unsigned()
    let issuer = try reader.text(0...Credential.maximumIssuerByteCount)
    let deviceID: DeviceID? = reader.null() ? nil : try reader.fixedBytes()
    let method = try CodeMethod(&reader)
    let (nextCounter, acknowledgedCounter) = (try reader.unsigned(), try reader.unsigned())
    let clockOffsetSeconds = try reader.integer()
    let (lastTimeStep, lastSynchronised) = (try reader.optionalUnsigned(), try reader.optionalUnsigned())
    let (window, fieldLimit) = (try reader.optionalUnsigned(), try reader.optionalUnsigned())
    let (group, isConfirmed) = (try reader.unsigned(), try reader.unsigned())
    let protection = try Protection(&reader)
    let blinded =
      reader.null()
      ? nil
      : BlindedSecret(
        protection: protection, bytes: SecretBytes(copying: try reader.byteString()))
    let change = try reader.unsigned()
    undo = reader.null() ? nil : [UInt8](try reader.byteString())
    let challenge = try reader.deviceChallenge()
    let changePosition = try reader.optionalUnsigned()
    var demand: ProtectionDemand?
    if count > Self.fieldCount {
      demand = ProtectionDemand(stored: try reader.unsigned())
      guard demand != nil else { throw .unexpected }
    }
    guard purpose <= 255, let purpose = RecordPurpose(rawValue: UInt8(purpose)), purpose.suits(method),
      (1...UInt64(8)).contains(index), change <= 255, let change = ChangeProgress(rawValue: UInt8(change)),
      (1...UInt64(64)).contains(fieldLimit ?? 64), isConfirmed <= 1,
      Record.clockOffsetBounds.contains(clockOffsetSeconds),
      (1...Credential.maximumSecretByteCount).contains(blinded?.bytes.count ?? 1), (undo?.count ?? 0) <= 512,
      blinded != nil || change == .erased || change == .importing,
      !user.unicodeScalars.contains(where: \.isControl)
    else { throw .unexpected }
    secret = blinded
    clientChallenge = challenge?.digits
    record = Record(
      user: user, index: Int(index), purpose: purpose, issuer: issuer, deviceID: deviceID, method: method,
      nextCounter: nextCounter, acknowledgedCounter: acknowledgedCounter, clockOffsetSeconds: clockOffsetSeconds,
      lastTimeStep: lastTimeStep, lastSynchronised: lastSynchronised, lookAheadWindow: window,
      sealFieldByteLimit: fieldLimit.map { Int($0) }, protection: protection.inputs, protectionGroup: group,
      isConfirmed: isConfirmed == 1, change: change, changePosition: changePosition, demand: demand)
  }
}

extension [UInt8] {
  fileprivate mutating func appendCBOR(optional number: UInt64?) {
    if let number { appendCBOR(unsigned: number) } else { appendCBORNull() }
  }

  fileprivate mutating func appendCBOR(optional bytes: [UInt8]?) {
    if let bytes { appendCBOR(bytes: bytes.span) } else { appendCBORNull() }
  }
}

extension CBORReader {
  fileprivate mutating func optionalUnsigned() throws(EncodingFault) -> UInt64? {
    null() ? nil : try unsigned()
  }

  /// Reads the digits of a challenge, as they are written: 16 hexadecimal digits in lower case.
  fileprivate mutating func deviceChallenge() throws(EncodingFault) -> DeviceChallenge? {
    if null() { return nil }
    let text = String(copying: try byteString())
    guard let challenge = DeviceChallenge(text), challenge.digits.utf8.elementsEqual(text.utf8) else {
      throw .unexpected
    }
    return challenge
  }

  fileprivate mutating func text(_ byteCounts: ClosedRange<Int>) throws(EncodingFault) -> String {
    let text = try textString()
    guard byteCounts.contains(text.count) else { throw .unexpected }
    return String(copying: text)
  }
}

extension String {
  fileprivate init(copying bytes: Span<UInt8>) {
    self.init(decoding: [UInt8](bytes), as: UTF8.self)
  }
}
