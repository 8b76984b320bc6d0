import CBoard
import HoldfastCore

/// Entropy as this board has it: none of its own, but 64 bytes that QEMU's loader puts into RAM from the host's random
/// source. A real board reads them from its noise source.
public enum SimulatedEntropy {
  /// Takes the bytes, which are wiped where they were, and says on the console what they are worth: nothing where the
  /// loader brought none, and the second time.
  public static func take() -> Secret<64> {
    let source = unsafe UnsafeMutableBufferPointer(start: board_entropy_bytes(), count: 64)
    var bytes = unsafe source.mutableSpan
    var anyBit: UInt8 = 0
    var entropy = Secret<64>()
    entropy.withMutableBytes { (copy: inout MutableSpan<UInt8>) in
      for index in bytes.indices {
        copy[index] = bytes[index]
        anyBit |= bytes[index]
      }
    }
    wipe(&bytes)
    Console.write(anyBit == 0 ? "entropy: none\n" : "entropy: simulated, 64 bytes from the host\n")
    return entropy
  }
}
