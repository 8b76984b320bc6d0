import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

/// A P-256 key that a TPM made and that never leaves it. The file `device.key` holds its place and the value that authorizes
/// its use, so that neither the file nor the TPM is of use without the other.
package final class TPMKey: Sendable {
  package let place: TPMKeyPlace
  private let authorization: Secret<32>
  private let operations: TPMKeyOperations
  /// A TPM carries out one command after another, and threads that wait here do not use up the time of theirs. The value is the
  /// time until which a TPM that was silent is not asked again, so that threads do not wait for it one after the other.
  private let turn = Mutex<Deadline?>(nil)

  package init(_ place: TPMKeyPlace, authorization: consuming Secret<32>, operations: TPMKeyOperations) {
    (self.place, self.operations) = (place, operations)
    self.authorization = authorization
  }

  /// Computes ECDH in the TPM: the x coordinate of this key times `peer`, 32 bytes.
  ///
  /// - Throws: a fault of the TPM, and `malformed` for a point that is not on the curve, which the TPM does not get.
  package func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CounterFault) {
    do throws(CryptographyFailure) { try checkPoint(peer.bytes, on: .p256) } catch { throw .malformed }
    try turn.withLock { pause throws(CounterFault) in
      if let pause, !pause.hasPassed { throw .silent }
      do throws(CounterFault) { try operations.agree(place, authorization, peer, &shared) } catch {
        if error == .silent { pause = Deadline(afterMilliseconds: TPM.timeoutMilliseconds) }
        throw error
      }
    }
  }

  /// Returns a secret that only this key yields: ECDH with its own public half. Everything that follows from the private key
  /// of a device in a file follows from this secret here.
  package func root(_ publicPoint: P256Point) throws(CounterFault) -> Secret<32> {
    var shared = Secret<32>()
    try agree(with: publicPoint, into: &shared)
    return shared
  }

  /// Removes the key from the TPM permanently.
  package func remove() throws(CounterFault) {
    try operations.remove(place)
  }

  /// Writes the contents of `device.key`: the place, the authorization value, and the hash that shows that the key at the place
  /// is this one.
  package func encode(check: Digest, into text: inout ByteBuffer<1024>) throws(EncodingFault) {
    try text.append("{\"tpm\":")
    try text.append(JSONValue.string(place.tpm).compact().span)
    try text.append(",\"handle\":")
    try text.append(Array("\(place.handle)".utf8).span)
    try text.append(",\"authorization\":\"")
    try authorization.withBytes { (bytes: Span<UInt8>) throws(EncodingFault) in try text.append(asBase64URL: bytes) }
    try text.append("\",\"check\":\"")
    try text.append(asBase64URL: check.bytes)
    try text.append("\"}\n")
  }
}

/// The contents of a `device.key` whose key is in a TPM.
package struct TPMKeyRecord: ~Copyable {
  package let place: TPMKeyPlace
  package let authorization: Secret<32>
  /// SHA-256 over what only the key yields; see ``TPMKey/root(_:)``.
  package let check: Digest

  package static let maximumByteCount = 1024

  /// Returns whether a key file is one of a key in a TPM.
  package static func isOne(_ text: Span<UInt8>) -> Bool {
    let start: StaticString = "{\"tpm\":"
    guard text.count > start.utf8CodeUnitCount else { return false }
    for index in 0..<start.utf8CodeUnitCount where unsafe text[index] != start.utf8Start[index] { return false }
    return true
  }

  /// Reads what ``TPMKey/encode(check:into:)`` wrote.
  ///
  /// - Throws: `malformed`, also for a place that no key of a device has.
  package init(_ text: Span<UInt8>) throws(KeyFault) {
    do throws(EncodingFault) {
      var reader = try JSONReader(text)
      var object = try reader.beginObject()
      let tpm: BoundedText<128> = try reader.member("tpm", of: &object) { (reader) throws(EncodingFault) in
        guard let text: BoundedText<128> = try reader.string().bounded() else { throw .tooLong }
        return text
      }
      let handle = try reader.member("handle", of: &object) { (reader) throws(EncodingFault) in try reader.unsigned() }
      let authorization = try reader.member("authorization", of: &object) { (reader) throws(EncodingFault) in
        try reader.secret()
      }
      let check = try reader.member("check", of: &object) { (reader) throws(EncodingFault) in try reader.secret() }
      guard try reader.nextMember(&object) == nil else { throw .unexpected }
      try reader.finish()
      guard let place = TPMKeyPlace(tpm: tpm.description, handle: handle),
        let digest = check.withBytes({ Digest($0) })
      else { throw .unexpected }
      self.place = place
      self.authorization = authorization
      self.check = digest
    } catch { throw .malformed }
  }
}

extension JSONReader {
  fileprivate mutating func member<Value: ~Copyable>(
    _ name: StaticString, of object: inout JSONObjectPosition,
    _ read: (inout JSONReader) throws(EncodingFault) -> Value
  ) throws(EncodingFault) -> Value {
    guard let found = try nextMember(&object), found.equals(name) else { throw .unexpected }
    return try read(&self)
  }

  fileprivate mutating func secret() throws(EncodingFault) -> Secret<32> {
    var text = ByteBuffer<64>()
    try string().unescape(into: &text)
    let bytes = try decodeBase64URL(text.bytes)
    guard let secret = Secret<32>(copying: bytes.bytes) else { throw .unexpected }
    return secret
  }
}

/// The place of a device's key in a TPM: a persistent object.
package struct TPMKeyPlace: Sendable, Equatable {
  /// The absolute path of at most 107 bytes of a TPM device file of the kernel's resource manager, or of a Unix socket.
  package let tpm: String
  /// The handle, from 0x81400000 to 0x817FFFFF, in the owner's range. Its lower 22 bits come from the device id.
  ///
  /// Source: Registry of Reserved TPM 2.0 Handles and Localities, §2.3.1.
  package let handle: UInt32

  /// Makes the place of a device's key; nil unless `tpm` is such a path.
  package init?(tpm: String, deviceID: DeviceID) {
    guard let counter = CounterPlace(tpm: tpm, deviceID: deviceID) else { return nil }
    self.tpm = tpm
    handle = 0x8140_0000 | counter.index & 0x3f_ffff
  }

  fileprivate init?(tpm: String, handle: UInt64) {
    guard CounterPlace(tpm: tpm, deviceID: DeviceID()) != nil, (0x8140_0000...0x817f_ffff).contains(handle) else {
      return nil
    }
    (self.tpm, self.handle) = (tpm, UInt32(handle))
  }
}

/// The operations on a key in a TPM. Tests replace them to make each one fail.
package struct TPMKeyOperations: Sendable {
  /// Makes a key at the place, which the value authorizes, and returns its public half. The 32 random bytes make it differ from
  /// every other key. Throws `taken` if the handle is in use.
  package var make: @Sendable (TPMKeyPlace, borrowing Secret<32>, FixedBytes<32>) throws(CounterFault) -> P256Point
  /// Removes the key permanently. Throws `notDefined` if there is none.
  package var remove: @Sendable (TPMKeyPlace) throws(CounterFault) -> Void
  /// Computes ECDH with a point on the curve.
  package var agree:
    @Sendable (TPMKeyPlace, borrowing Secret<32>, P256Point, inout Secret<32>) throws(CounterFault) -> Void

  package init(
    make: @escaping @Sendable (TPMKeyPlace, borrowing Secret<32>, FixedBytes<32>) throws(CounterFault) -> P256Point,
    remove: @escaping @Sendable (TPMKeyPlace) throws(CounterFault) -> Void,
    agree:
      @escaping @Sendable (TPMKeyPlace, borrowing Secret<32>, P256Point, inout Secret<32>) throws(CounterFault) -> Void
  ) {
    (self.make, self.remove, self.agree) = (make, remove, agree)
  }
}

extension DeviceSecrets {
  /// Makes a new key in a TPM, and the secrets that follow from it.
  ///
  /// - Throws: `key` with the TPM's fault, `failed`. If a later step fails, the key is removed again.
  package convenience init<Random: RandomSource & ~Copyable>(
    makingAt place: TPMKeyPlace, _ operations: TPMKeyOperations, _ random: inout Random
  ) throws(DeviceFolderFault) {
    var authorization = Secret<32>()
    let unique: FixedBytes<32>
    do throws(RandomFailure) {
      unique = try random.fixedBytes()
      authorization.set(try random.secret())
    } catch { throw .failed }
    let point: P256Point
    do throws(CounterFault) { point = try operations.make(place, authorization, unique) } catch { throw .key(error) }
    do throws(DeviceFolderFault) {
      try self.init(TPMKey(place, authorization: authorization, operations: operations), point, check: nil)
    } catch {
      do throws(CounterFault) { try operations.remove(place) } catch {}
      throw error
    }
  }
}
