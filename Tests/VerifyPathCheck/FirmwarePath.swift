/// A whole device for a microcontroller, over a board that is not there.

import HoldfastCore
import HoldfastFirmware

@_silgen_name("stub_flash") func stubFlash() -> UnsafeMutableRawPointer

private struct StubBoard: Board {
  mutating func receive(until deadlineMilliseconds: UInt64) -> ReceivedByte {
    stubResult() == 0 ? .silence : .byte(stubReceive())
  }

  mutating func send(_ bytes: Span<UInt8>) {
    for index in bytes.indices { stubUpdate(bytes[index]) }
  }

  mutating func pause(until milliseconds: UInt64) {}
  mutating func notify(_ notice: FirmwareNotice) {}
}

private struct StubLock: Lock {
  var current: LockState { stubResult() == 0 ? .locked : .unlocked }
  mutating func move(to target: LockState) throws(ActuatorFailure) { stubUpdate(1) }
}

private enum Stubs: FirmwareEnvironment {
  typealias Flash = SimulatedFlash
  typealias Crypto = StubCryptography
  typealias Key = StubKey
  typealias Random = StubHost
  typealias Time = StubHost
  typealias Hardware = StubBoard
  typealias Machine = LockActuator<StubLock>
}

/// Starts, and serves for ever.
@_cdecl("firmware_path_check")
public func firmwarePathCheck() {
  let memory = unsafe UnsafeMutableRawBufferPointer(start: stubFlash(), count: FlashLayout.byteCount)
  do throws(FirmwareFault) {
    var cryptography = StubCryptography()
    let parts = try unsafe FirmwareParts.read(
      SimulatedFlash(memory), using: &cryptography, key: { _ in StubKey() }, random: { _, _ in StubHost() })
    var device = FirmwareDevice<Stubs>(
      parts, board: StubBoard(), machine: LockActuator(StubLock()), clock: StubHost(),
      cryptography: { StubCryptography() })
    try device.start()
    device.run()
  } catch {
    var denied = DeniedDevice(board: StubBoard(), clock: StubHost())
    denied.run()
  }
}
