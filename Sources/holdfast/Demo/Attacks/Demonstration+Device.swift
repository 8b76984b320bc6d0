import HoldfastCore
import HoldfastDevice
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport
import Synchronization

extension Demonstration {
  /// Commands beyond what token and policy allow.
  mutating func attackThePolicy() throws(Failure) {
    try playground.enroll("limited", device: "device", "--allow", "status")
    story.expect(
      "a command that the token does not allow", Status.commandRefused.name, try runProver(state: "limited").statusName)
    story.expect(
      "a command that policy does not know", Status.commandRefused.name,
      try runProver(command: "self-destruct").statusName)
    do throws(FileError) { try Files.removeFile(at: playground.path("other/policy.json")) } catch {
      throw Failure(error)
    }
    let other = try playground.serve("other")
    story.expect(
      "a device without a policy", Status.commandRefused.name,
      try runProver(state: "other-prover", at: other).statusName)
  }

  /// Starts a device twice with a random source that gives the same bytes each time.
  mutating func attackTheBoot() throws(Failure) {
    try playground.makeDevice("booted")
    let (first, second) = (try firstNonce(), try firstNonce())
    story.expect(
      "two starts with the same random numbers", "another challenge",
      first == second ? "the same challenge" : "another challenge")
  }

  /// Starts the device, and gives the first challenge after it.
  private func firstNonce() throws(Failure) -> FixedBytes<16> {
    let endpoint = try Endpoint(argument: "unix:\(playground.path("booted")).sock")
    let server = try serveWithoutRandomness(at: endpoint)
    let message = MessageBox()
    BackgroundThread.start {
      message.bytes.withLock { $0 = (try? Attacker.Line(endpoint).receive()) ?? [] }
      server.stop()
    }
    do throws(ServerFault) { try server.run() } catch {
      throw Failure(error, folder: playground.path("booted"))
    }
    let bytes = message.bytes.withLock { $0 }
    do throws(EncodingFault) { return try Challenge(bytes.span).nonce } catch {
      throw Failure(.malformed, "the device sent something else than a challenge")
    }
  }

  private func serveWithoutRandomness(
    at endpoint: Endpoint
  ) throws(Failure) -> DeviceServer<StuckRandom, SystemClock> {
    let path = playground.path("booted")
    let folder: DeviceFolder
    do throws(DeviceFolderFault) { folder = try DeviceFolder.open(at: path) } catch {
      throw Failure(error, folder: path)
    }
    do throws(ServerFault) {
      return try DeviceServer(folder: folder, endpoints: [endpoint], random: StuckRandom(), clock: SystemClock())
    } catch { throw Failure(error, folder: path) }
  }
}

/// What another thread has received.
private final class MessageBox: Sendable {
  let bytes = Mutex<[UInt8]>([])
}

/// A random source that is none.
private struct StuckRandom: RandomSource {
  mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    for index in bytes.indices { bytes[index] = 0 }
  }
}
