import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// The TPM's commands. Each runs over a separate connection, because a TPM's socket serves one peer at a time.
package enum TPM {
  /// The most time for one command, with its connection and all repetitions, in milliseconds.
  package static let timeoutMilliseconds = 5000
  /// The permanent handle TPM_RH_OWNER.
  static let ownerHandle: UInt32 = 0x4000_0001

  /// Runs a command and returns the parameters of its response, exactly `byteCount` bytes.
  ///
  /// - Throws: `malformed` for a response of another length, `silent` once the time is over, and as the TPM's response code
  ///   says.
  @discardableResult
  package static func run(
    _ command: TPMCommand, authorization: Span<UInt8>, parameters: Span<UInt8>, at path: String,
    response byteCount: Int, timeoutMilliseconds: Int = timeoutMilliseconds
  ) throws(CounterFault) -> [UInt8] {
    var bytes = ByteBuffer<160>()
    do throws(EncodingFault) {
      try command.encode(authorization: authorization, parameters: parameters, into: &bytes)
    } catch { throw .malformed }
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    let connection = try TPMConnection(path: path, deadline: deadline)
    var answer = ByteBuffer<64>()
    let range = try perform(command.code, bytes.bytes, over: connection, until: deadline, into: &answer)
    guard range.count == byteCount else { throw .malformed }
    return Array(answer.bytes.extracting(range))
  }

  /// Sends an encoded command, again while the TPM asks for that, and returns the range of the parameters in its response.
  ///
  /// - Parameters:
  ///   - handleCount: the number of handles in the response.
  ///   - answer: receives the whole response.
  static func perform<let capacity: Int>(
    _ code: TPMCommand.Code, _ command: Span<UInt8>, over connection: borrowing TPMConnection, until deadline: Deadline,
    handleCount: Int = 0, into answer: inout ByteBuffer<capacity>
  ) throws(CounterFault) -> Range<Int> {
    while true {
      try connection.exchange(command, into: &answer)
      switch try TPMResponse.layout(of: answer.bytes, handleCount: handleCount, limit: capacity) {
      case .success(let range): return range
      case .failure(let failure):
        guard failure.wantsRetry else { throw failure.fault(isOwners: code.isOwners) }
        guard !deadline.hasPassed else { throw .silent }
        usleep(5000)
      }
    }
  }
}

extension CounterOperations {
  /// The operations on the counters of a TPM 2.0.
  ///
  /// Source: TPM 2.0 Library, Part 3 §31: TPM2_NV_DefineSpace, NV_UndefineSpace, NV_Increment, NV_Read. All use password
  /// sessions with an empty owner password. A counter that is removed and defined again continues above every earlier one
  /// (Part 1 §37.2.4.3), and only a holder of the authorization value can read or raise it. A check that the index is a
  /// counter is not necessary: nothing else can be incremented, and a device does nothing before it has incremented the
  /// counter.
  package static let tpm = CounterOperations(
    define: { (place, authorization) throws(CounterFault) in
      try authorization.withBytes { (value: Span<UInt8>) throws(CounterFault) in
        var parameters = ByteBuffer<64>()
        do throws(EncodingFault) { try parameters.append(definitionOf: place, authorization: value) } catch {
          throw .malformed
        }
        let command = TPMCommand(code: .defineSpace, handles: [ownerHandle])
        try TPM.run(command, authorization: Span(), parameters: parameters.bytes, at: place.tpm, response: 0)
      }
    },
    undefine: { (place) throws(CounterFault) in
      let command = TPMCommand(code: .undefineSpace, handles: [ownerHandle, place.index])
      try TPM.run(command, authorization: Span(), parameters: Span(), at: place.tpm, response: 0)
    },
    increment: { (place, authorization) throws(CounterFault) in
      try authorization.withBytes { (value: Span<UInt8>) throws(CounterFault) in
        let command = TPMCommand(code: .increment, handles: [place.index, place.index])
        try TPM.run(command, authorization: value, parameters: Span(), at: place.tpm, response: 0)
      }
    },
    read: { (place, authorization) throws(CounterFault) in
      try authorization.withBytes { (value: Span<UInt8>) throws(CounterFault) -> UInt64 in
        let command = TPMCommand(code: .read, handles: [place.index, place.index])
        let byteCountAndOffset: InlineArray<4, UInt8> = [0, 8, 0, 0]
        let answer = try TPM.run(
          command, authorization: value, parameters: byteCountAndOffset.span, at: place.tpm, response: 10)
        guard answer[0] == 0, answer[1] == 8 else { throw .malformed }
        return answer[2...].reduce(0) { $0 << 8 | UInt64($1) }
      }
    })

  private static var ownerHandle: UInt32 { TPM.ownerHandle }
}

extension ByteBuffer {
  /// Appends TPM2B_AUTH and TPM2B_NV_PUBLIC of an 8-byte counter that only a holder of `authorization` can use.
  ///
  /// Source: Part 2 §13.4 (TPMA_NV) and §13.5: TPM_NT_COUNTER, AUTHWRITE, AUTHREAD, NO_DA. The name's hash is SHA-256.
  fileprivate mutating func append(
    definitionOf place: CounterPlace, authorization: Span<UInt8>
  ) throws(EncodingFault) {
    try append(bigEndian: UInt16(authorization.count))
    try append(authorization)
    try append(bigEndian: 14 as UInt16)
    try append(bigEndian: place.index)
    try append(bigEndian: 0x000b as UInt16)
    try append(bigEndian: 0x0204_0014 as UInt32)
    try append(bigEndian: 0 as UInt16)
    try append(bigEndian: 8 as UInt16)
  }
}

/// A command of a TPM 2.0 with one password session.
///
/// It is implemented here and not taken from tpm2-tss, which would add hundreds of kilobytes for eight commands: the prover
/// hashes every byte of this executable for each proof. Source: TPM 2.0 Library, Part 1 §18 (structure), §19.4 (password
/// authorizations).
package struct TPMCommand {
  /// A command code. Source: Part 2 §6.5.2.
  package enum Code: UInt32 {
    case evictControl = 0x120
    case undefineSpace = 0x122
    case defineSpace = 0x12a
    case createPrimary = 0x131
    case increment = 0x134
    case read = 0x14e
    case agree = 0x154
    case flushContext = 0x165

    /// Whether the TPM's owner authorizes the command.
    package var isOwners: Bool {
      [.undefineSpace, .defineSpace, .createPrimary, .evictControl].contains(self)
    }
  }

  package let code: Code
  /// The handles. The first one is authorized.
  package let handles: [UInt32]

  package init(code: Code, handles: [UInt32]) {
    (self.code, self.handles) = (code, handles)
  }

  /// Appends tag, size, code, handles, the session with `authorization`, and `parameters`.
  package func encode(
    authorization: Span<UInt8>, parameters: Span<UInt8>, into bytes: inout ByteBuffer<160>
  ) throws(EncodingFault) {
    let sessionByteCount = 9 + authorization.count
    try bytes.append(bigEndian: 0x8002 as UInt16)
    try bytes.append(bigEndian: UInt32(14 + 4 * handles.count + sessionByteCount + parameters.count))
    try bytes.append(bigEndian: code.rawValue)
    for handle in handles { try bytes.append(bigEndian: handle) }
    try bytes.append(bigEndian: UInt32(sessionByteCount))
    // The session is TPM_RS_PW without a nonce, with continueSession.
    try bytes.append(bigEndian: 0x4000_0009 as UInt32)
    try bytes.append(bigEndian: 0 as UInt16)
    try bytes.append(1)
    try bytes.append(bigEndian: UInt16(authorization.count))
    try bytes.append(authorization)
    try bytes.append(parameters)
  }
}

/// The response of a TPM to a command with one password session, decoded strictly.
///
/// Source: TPM 2.0 Library, Part 1 §18.
package enum TPMResponse: Equatable {
  case success(parameters: [UInt8])
  case failure(TPMResponseCode)

  /// The length of tag, size and response code, in bytes.
  package static let headByteCount = 10
  /// The most bytes of a response to a command on a counter.
  package static let maximumByteCount = 64

  /// The place of the parameters in a response, or the reason that there are none.
  package enum Layout {
    case success(Range<Int>)
    case failure(TPMResponseCode)
  }

  /// Returns the length that a response's head gives; nil if no response can have it. `head` has at least 10 bytes.
  package static func byteCount(of head: Span<UInt8>, limit: Int = maximumByteCount) -> Int? {
    let count = head.bigEndian(at: 2)
    return (UInt32(headByteCount)...UInt32(limit)).contains(count) ? Int(count) : nil
  }

  /// Finds the parameters in one whole response. A failure is only a head; a success has handles, parameters and the empty
  /// session of a password.
  ///
  /// - Throws: `malformed` for anything else.
  static func layout(
    of bytes: Span<UInt8>, handleCount: Int, limit: Int = maximumByteCount
  ) throws(CounterFault) -> Layout {
    guard bytes.count >= headByteCount, byteCount(of: bytes, limit: limit) == bytes.count else { throw .malformed }
    let tag = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    let code = bytes.bigEndian(at: 6)
    guard code == 0 else {
      guard tag == 0x8001, bytes.count == headByteCount else { throw .malformed }
      return .failure(TPMResponseCode(rawValue: code))
    }
    let session: InlineArray<5, UInt8> = [0, 0, 1, 0, 0]
    let start = headByteCount + 4 * handleCount + 4
    guard tag == 0x8002, bytes.count >= start + session.count,
      bytes.bigEndian(at: start - 4) == UInt32(bytes.count - start - session.count),
      bytes.extracting((bytes.count - session.count)...).elementsEqual(session.span)
    else { throw .malformed }
    return .success(start..<bytes.count - session.count)
  }

  /// Decodes one whole response without handles.
  ///
  /// - Throws: `malformed` for anything else.
  package init(_ bytes: Span<UInt8>) throws(CounterFault) {
    switch try Self.layout(of: bytes, handleCount: 0) {
    case .success(let range): self = .success(parameters: Array(bytes.extracting(range)))
    case .failure(let code): self = .failure(code)
    }
  }
}

extension Span where Element == UInt8 {
  /// Returns the four bytes at `offset`, most significant first.
  func bigEndian(at offset: Int) -> UInt32 {
    (0..<4).reduce(0) { $0 << 8 | UInt32(self[offset + $1]) }
  }
}

/// A response code that says why a TPM refused a command.
///
/// Source: TPM 2.0 Library, Part 2 §6.6. In codes of format one (bit 7), other bits name the handle, session or parameter
/// that the code is about. They are ignored here.
package struct TPMResponseCode: Equatable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// Whether the TPM did nothing and asks for the same command again: TPM_RC_YIELDED, TESTING, NV_RATE, RETRY.
  package var wantsRetry: Bool {
    [0x908, 0x90a, 0x920, 0x922].contains(rawValue)
  }

  /// Returns the fault that the code means for the counter. `isOwners` says whether the TPM's owner authorizes the command.
  package func fault(isOwners: Bool) -> CounterFault {
    let isFormatOne = rawValue & 0x80 != 0
    switch isFormatOne ? rawValue & 0xbf : rawValue {
    // TPM_RC_HANDLE.
    case 0x8b: return .notDefined
    // TPM_RC_NV_DEFINED, NV_SPACE.
    case 0x14c: return .taken
    case 0x14b: return .full
    // TPM_RC_AUTH_FAIL, BAD_AUTH.
    case 0x8e, 0xa2: return isOwners ? .ownerOnly : .notOurs
    // TPM_RC_ATTRIBUTES, AUTH_UNAVAILABLE, NV_RANGE, NV_AUTHORIZATION, NV_UNINITIALIZED.
    case 0x82, 0x12f, 0x146, 0x149, 0x14a: return .notOurs
    default: return .refused(code: rawValue)
    }
  }
}
