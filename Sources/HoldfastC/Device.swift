import CHoldfast
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Synchronization

typealias CallerDevice = OpenDevice<DeviceSecrets, SystemRandom, SystemClock>

/// The object behind `hf_device_t`: an open device with its machine, which is served or has sessions.
final class CDevice: Sendable {
  typealias Server = DeviceServer<CallerMachine, DeviceSecrets, SystemRandom, SystemClock>

  let device: CallerDevice
  let machine: CallerMachine
  private let use = Mutex(Use.sessions(count: 0))

  private enum Use {
    case sessions(count: Int)
    /// It is served, or begins to be; a stop may come before the server exists.
    case served(Server?)
    case stopped
  }

  init(_ device: CallerDevice, _ machine: CallerMachine) { (self.device, self.machine) = (device, machine) }

  /// Begins to serve; `makeServer` begins to listen. Returns nil if the device was stopped before.
  func beginServing(_ makeServer: () throws(CallFailure) -> Server) throws(CallFailure) -> Server? {
    try use.withLock { use throws(CallFailure) in
      switch use {
      case .sessions(count: 0): break
      case .stopped: return nil
      case .sessions, .served: throw CallFailure(HF_ERROR_ORDER)
      }
      let server = try makeServer()
      use = .served(server)
      return server
    }
  }

  /// Ends the server, now or as soon as it begins.
  func stop() {
    use.withLock { use in
      switch use {
      case .served(let server): server?.stop()
      case .sessions(count: 0): use = .stopped
      case .sessions, .stopped: break
      }
    }
  }

  /// Counts a session.
  func addSession() throws(CallFailure) {
    try use.withLock { use throws(CallFailure) in
      guard case .sessions(let count) = use else { throw CallFailure(HF_ERROR_ORDER) }
      use = .sessions(count: count + 1)
    }
  }

  /// Counts the end of a session.
  func removeSession() {
    use.withLock { use in
      if case .sessions(let count) = use { use = .sessions(count: count - 1) }
    }
  }
}

/// Opens a device; see the header.
@c @implementation public func hf_device_open(
  _ folder: UnsafePointer<CChar>?, _ actuator: UnsafePointer<hf_actuator_t>?,
  _ device: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt {
  call { () throws(CallFailure) in
    guard let handle = unsafe device else { throw .argument }
    let path = try unsafe Input.text(folder, maximum: Input.maximumPathByteCount)
    let machine = try unsafe CallerMachine(actuator)
    let opened = try converting(CallFailure.init) { () throws(DeviceFolderFault) in try CallerDevice(at: path) }
    unsafe Handle.give(CDevice(opened, machine), to: handle)
    return 0
  }
}

/// Closes a device; see the header.
@c @implementation public func hf_device_close(_ device: OpaquePointer?) {
  unsafe Handle.takeBack(device, CDevice.self)
}

/// Writes the device's description; see the header.
@c @implementation public func hf_device_descriptor(
  _ device: OpaquePointer?, _ json: UnsafeMutablePointer<CChar>?, _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(device, CDevice.self)
    try unsafe CallerBuffer(json, length).write(text: object.device.folder.descriptor.json.compact())
    return 0
  }
}

/// Serves provers; see the header.
@c @implementation public func hf_device_serve(
  _ device: OpaquePointer?, _ endpoints: UnsafePointer<UnsafePointer<CChar>?>?, _ count: Int
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(device, CDevice.self)
    guard let list = unsafe endpoints, (1...64).contains(count) else { throw .argument }
    var places: [Endpoint] = []
    for index in 0..<count {
      let text = try unsafe Input.text(list[index], maximum: Input.maximumPathByteCount)
      places.append(try converting({ _ in .argument }) { () throws(EndpointError) in try Endpoint(parsing: text) })
    }
    let server = try object.beginServing { () throws(CallFailure) in
      try converting(CallFailure.init) { () throws(ServerFault) in
        try CDevice.Server(object.device, actuator: object.machine, at: places)
      }
    }
    try converting(CallFailure.init) { () throws(ServerFault) in try server?.run() }
    return 0
  }
}

/// Ends the server; see the header.
@c @implementation public func hf_device_stop(_ device: OpaquePointer?) -> CInt {
  call { () throws(CallFailure) in
    try unsafe Handle.object(device, CDevice.self).stop()
    return 0
  }
}
