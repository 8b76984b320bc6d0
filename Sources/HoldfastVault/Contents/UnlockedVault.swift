import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A vault whose key is in memory. It encrypts and decrypts until it goes out of scope, when the key is wiped.
///
/// Nothing that was not authenticated is ever released. Several threads may use it at once.
public struct UnlockedVault: ~Copyable, Sendable {
  let id: VaultID
  let key: SecretBytes
  private let fill: @Sendable (inout MutableSpan<UInt8>) throws(RandomFailure) -> Void

  /// Creates a vault whose key was unwrapped.
  ///
  /// - Parameters:
  ///   - id: The vault's id, 16 bytes.
  ///   - key: The vault's key, 32 bytes.
  ///   - fill: Makes fresh random bytes.
  package init(
    id: VaultID, key: consuming SecretBytes,
    fill: @escaping @Sendable (inout MutableSpan<UInt8>) throws(RandomFailure) -> Void
  ) {
    (self.id, self.fill) = (id, fill)
    self.key = key
  }

  /// Returns a deliberate copy of the key, for the agent.
  package borrowing func copiedKey() -> SecretBytes { SecretBytes(copying: key.bytes) }

  /// Encrypts everything that `input` yields, and writes it to `output`.
  ///
  /// - Parameters:
  ///   - input: An open descriptor, read from its current place to its end.
  ///   - output: An open descriptor, which is not made durable.
  ///   - context: What the contents are. Decrypting requires the same text, so that nobody can pass one value off as another.
  /// - Throws: ``VaultFault/input(_:)``, ``VaultFault/output(_:)``, ``VaultFault/cryptography``.
  public borrowing func encrypt(from input: Int32, to output: Int32, context: String = "") throws(VaultFault) {
    try encrypt(from: input, context: context) { (bytes) throws(VaultFault) in try writeAll(bytes, to: output) }
  }

  /// Decrypts everything that `input` yields, and writes each chunk to `output` after checking its tag.
  ///
  /// An error in the middle means that only a part was written. That part is authentic, but its end is missing: do not use it as if
  /// it were whole.
  ///
  /// - Parameters:
  ///   - input: An open descriptor, read from its current place to its end.
  ///   - output: An open descriptor, which is not made durable.
  ///   - context: The text with which the contents were encrypted.
  /// - Throws: ``VaultFault/notEncrypted``, ``VaultFault/otherVault``, ``VaultFault/contentsDamaged``,
  ///   ``VaultFault/input(_:)``, ``VaultFault/output(_:)``, ``VaultFault/cryptography``.
  public borrowing func decrypt(from input: Int32, to output: Int32, context: String = "") throws(VaultFault) {
    try decrypt(from: input, context: context) { (bytes) throws(VaultFault) in try writeAll(bytes, to: output) }
  }

  /// Returns a small value, encrypted. It has the format of an encrypted file.
  ///
  /// - Parameters:
  ///   - bytes: The value, of any length; it is in memory as a whole.
  ///   - context: What the value is.
  /// - Throws: ``VaultFault/cryptography``.
  public borrowing func encrypted(_ bytes: Span<UInt8>, context: String = "") throws(VaultFault) -> [UInt8] {
    var rest = bytes
    var result: [UInt8] = []
    try encrypt(
      context: context,
      reading: { (output) throws(VaultFault) in
        let count = min(output.count, rest.count)
        for index in 0..<count { output[index] = rest[index] }
        rest = rest.extracting(droppingFirst: count)
        return count
      }, writing: { (bytes) throws(VaultFault) in result.append(bytes) })
    return result
  }

  /// Returns a small value, encrypted; see the variant for a span.
  public borrowing func encrypted(_ bytes: [UInt8], context: String = "") throws(VaultFault) -> [UInt8] {
    try encrypted(bytes.span, context: context)
  }

  /// Lends a decrypted value to `body`, and wipes it afterwards.
  ///
  /// - Parameters:
  ///   - sealed: The result of ``encrypted(_:context:)-(Span<UInt8>,_)``.
  ///   - context: The text with which the value was encrypted.
  ///   - body: Receives the value, after all of it was authenticated.
  /// - Throws: The errors of ``decrypt(from:to:context:)``, except those of input and output.
  public borrowing func withDecrypted<Result: ~Copyable>(
    _ sealed: [UInt8], context: String = "", _ body: (Span<UInt8>) -> Result
  ) throws(VaultFault) -> Result {
    var position = 0
    var value = SecretBuffer(capacity: sealed.count)
    try decrypt(
      context: context,
      reading: { (output) throws(VaultFault) in
        let count = min(output.count, sealed.count - position)
        for index in 0..<count { output[index] = sealed[position + index] }
        position += count
        return count
      }, writing: { (bytes) throws(VaultFault) in value.append(bytes) })
    return body(value.bytes)
  }

  /// Returns a decrypted value. Its memory is not wiped: prefer ``withDecrypted(_:context:_:)`` for secrets.
  ///
  /// - Parameters:
  ///   - sealed: The encrypted value.
  ///   - context: The text with which the value was encrypted.
  /// - Throws: The errors of ``withDecrypted(_:context:_:)``.
  public borrowing func decrypted(_ sealed: [UInt8], context: String = "") throws(VaultFault) -> [UInt8] {
    try withDecrypted(sealed, context: context) { [UInt8]($0) }
  }
}

extension UnlockedVault {
  /// Encrypts everything that a descriptor yields, and hands it to `write`.
  package borrowing func encrypt(
    from input: Int32, context: String, writing write: (Span<UInt8>) throws(VaultFault) -> Void
  ) throws(VaultFault) {
    let source = DescriptorSource(number: input)
    try encrypt(
      context: context, reading: { (bytes) throws(VaultFault) in try source.fill(&bytes) }, writing: write)
  }

  /// Decrypts everything that a descriptor yields, and hands each chunk to `write` after checking its tag.
  package borrowing func decrypt(
    from input: Int32, context: String, writing write: (Span<UInt8>) throws(VaultFault) -> Void
  ) throws(VaultFault) {
    let source = DescriptorSource(number: input)
    try decrypt(
      context: context, reading: { (bytes) throws(VaultFault) in try source.fill(&bytes) }, writing: write)
  }

  /// Encrypts chunk by chunk. It reads one chunk ahead, because the last one is encrypted as such.
  ///
  /// - Parameters:
  ///   - context: What the contents are.
  ///   - read: Fills a span, and returns how many bytes there were: fewer only at the end.
  ///   - write: Takes the next encrypted bytes.
  package borrowing func encrypt(
    context: String, reading read: (inout MutableSpan<UInt8>) throws(VaultFault) -> Int,
    writing write: (Span<UInt8>) throws(VaultFault) -> Void
  ) throws(VaultFault) {
    var salt = FixedBytes<32>()
    var saltBytes = salt.mutableBytes
    do throws(RandomFailure) { try fill(&saltBytes) } catch { throw .cryptography }
    var cipher: ChunkCipher
    do throws(CryptographyFailure) {
      cipher = try ChunkCipher(encrypting: context, id: id, key: key, salt: salt)
    } catch { throw .cryptography }
    let header = cipher.header
    try write(header.span)
    var chunk = Chunk(byteCount: ChunkCipher.chunkByteCount)
    var next = Chunk(byteCount: ChunkCipher.chunkByteCount)
    try chunk.fill(read)
    var isLast = false
    while !isLast {
      if chunk.isFull { try next.fill(read) }
      isLast = !chunk.isFull || next.count == 0
      var message = chunk.mutableBytes
      let tag: AuthenticationTag
      do throws(CryptographyFailure) { tag = try cipher.seal(&message, isLast: isLast) } catch { throw .cryptography }
      try write(chunk.bytes)
      try write(tag.bytes)
      swap(&chunk, &next)
    }
  }

  /// Decrypts chunk by chunk. A chunk is written once its tag is right, and the last one only if nothing follows it.
  package borrowing func decrypt(
    context: String, reading read: (inout MutableSpan<UInt8>) throws(VaultFault) -> Int,
    writing write: (Span<UInt8>) throws(VaultFault) -> Void
  ) throws(VaultFault) {
    var head = Chunk(byteCount: ChunkCipher.headerByteCount)
    try head.fill(read)
    var cipher = try ChunkCipher(decrypting: [UInt8](head.bytes), context: context, id: id, key: key)
    let sealedByteCount = ChunkCipher.chunkByteCount + ChunkCipher.tagByteCount
    var chunk = Chunk(byteCount: sealedByteCount)
    var next = Chunk(byteCount: sealedByteCount)
    try chunk.fill(read)
    var (isFirst, isLast) = (true, false)
    while !isLast {
      if chunk.isFull { try next.fill(read) }
      isLast = !chunk.isFull || next.count == 0
      // Only empty contents have an empty chunk.
      let count = chunk.count - ChunkCipher.tagByteCount
      guard count > 0 || isFirst && count == 0 else { throw .contentsDamaged }
      let tag = AuthenticationTag(chunk.bytes.extracting(last: ChunkCipher.tagByteCount))!
      chunk.count = count
      var message = chunk.mutableBytes
      do throws(CryptographyFailure) { try cipher.open(&message, tag: tag, isLast: isLast) } catch {
        throw .contentsDamaged
      }
      try write(chunk.bytes)
      swap(&chunk, &next)
      isFirst = false
    }
  }
}

/// A buffer for one chunk, which is wiped when it goes out of scope.
private struct Chunk: ~Copyable {
  private var storage: SecretBytes
  /// The number of bytes that are in use.
  var count = 0

  init(byteCount: Int) { storage = SecretBytes(zeros: byteCount) }

  var isFull: Bool { count == storage.count }

  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { storage.bytes.extracting(first: count) }
  }

  var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get {
      let count = count
      return storage.mutableBytes._consumingExtracting(first: count)
    }
  }

  /// Replaces the contents with the next bytes of an input.
  mutating func fill(_ read: (inout MutableSpan<UInt8>) throws(VaultFault) -> Int) throws(VaultFault) {
    var room = storage.mutableBytes
    count = try read(&room)
  }
}

/// An open descriptor that another part of the program owns.
private struct DescriptorSource {
  let number: Int32

  /// Reads until the span is full or the input ends.
  func fill(_ bytes: inout MutableSpan<UInt8>) throws(VaultFault) -> Int {
    var count = 0
    while count < bytes.count {
      let read = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe Glibc.read(number, buffer.baseAddress! + count, buffer.count - count)
      }
      if read == 0 { break }
      if read > 0 { count += read } else { try wait(number, for: POLLIN, orThrow: VaultFault.input) }
    }
    return count
  }
}

private func writeAll(_ bytes: Span<UInt8>, to number: Int32) throws(VaultFault) {
  var rest = bytes
  while !rest.isEmpty {
    let written = unsafe rest.withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
    if written >= 0 {
      rest = rest.extracting(droppingFirst: written)
    } else {
      try wait(number, for: POLLOUT, orThrow: VaultFault.output)
    }
  }
}

/// Decides about a failed call: another attempt after a signal, or once a descriptor that does not block is ready.
private func wait(
  _ number: Int32, for events: Int32, orThrow fault: (Int32) -> VaultFault
) throws(VaultFault) {
  switch errno {
  case EINTR: return
  case EAGAIN:
    var waited = pollfd(fd: number, events: Int16(events), revents: 0)
    _ = unsafe poll(&waited, 1, -1)
  default: throw fault(errno)
  }
}
