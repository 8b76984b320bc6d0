import Glibc
import HoldfastCore
import HoldfastLinux
import Synchronization

/// The digests of this process's code, hashed once, with the state in which they are valid.
///
/// They are in locked memory, which is wiped when others replace them. A forked child does not use its parent's.
final class KnownCode: Sendable {
  /// The components that need no hashing while the code is unchanged.
  struct Digests {
    var image: Digest
    var text: Digest
  }

  /// The digests of the running process, for all of its measurers.
  static let ofThisProcess = KnownCode()
  /// The same, as tree digests.
  static let treesOfThisProcess = KnownCode()

  private let kept = Mutex<Kept?>(nil)

  /// Returns the digests if they were remembered for exactly this state.
  func digests(for state: UnchangingCode) -> Digests? {
    guard let kept = kept.withLock({ $0 }), kept.process == getpid(), kept.state == state else { return nil }
    return kept.digests
  }

  /// Remembers digests in place of earlier ones. Without memory that can be locked, nothing is remembered.
  func remember(_ digests: Digests, for state: UnchangingCode) {
    let fresh = try? Kept(digests, state)
    kept.withLock { $0 = fresh }
  }

  /// Forgets the digests.
  func forget() { kept.withLock { $0 = nil } }
}

/// Digests in locked memory, the image's and the text's, and the process that hashed them.
private final class Kept: Sendable {
  let process = getpid()
  let state: UnchangingCode
  private let memory: LockedMemory

  init(_ digests: KnownCode.Digests, _ state: UnchangingCode) throws(SystemError) {
    self.state = state
    var memory = try LockedMemory(byteCount: 64)
    var bytes = memory.bytes
    for index in 0..<32 {
      bytes[index] = digests.image.bytes[index]
      bytes[32 + index] = digests.text.bytes[index]
    }
    self.memory = memory
  }

  var digests: KnownCode.Digests? {
    memory.withBytes { bytes in
      guard let image = Digest(bytes.extracting(0..<32)), let text = Digest(bytes.extracting(32..<64)) else {
        return nil
      }
      return KnownCode.Digests(image: image, text: text)
    }
  }
}
