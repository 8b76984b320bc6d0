import HoldfastCore

/// The components that Linux has, in the order of their ids within each scope.
enum PlatformComponent: CaseIterable {
  case appDebug, appImage, appInjected, appText, osRelease
  case deviceCPU, deviceMachine, deviceSecret

  static let app: [PlatformComponent] = [.appDebug, .appImage, .appInjected, .appText, .osRelease]
  static let device: [PlatformComponent] = [.deviceCPU, .deviceMachine, .deviceSecret]

  var id: ComponentID {
    switch self {
    case .appDebug: ComponentID("app.debug")
    case .appImage: ComponentID("app.image")
    case .appInjected: ComponentID("app.injected")
    case .appText: ComponentID("app.text")
    case .osRelease: ComponentID("os.release")
    case .deviceCPU: ComponentID("device.cpu")
    case .deviceMachine: ComponentID("device.machine")
    case .deviceSecret: ComponentID("device.secret")
    }
  }

  /// Those of `scope` that `ids` names, in its order.
  static func named(_ ids: [ComponentID], in scope: [PlatformComponent]) throws(MeasurementError) -> [PlatformComponent]
  {
    var components: [PlatformComponent] = []
    for id in ids {
      guard let component = scope.first(where: { $0.id == id }) else { throw .unknownComponent }
      components.append(component)
    }
    return components
  }
}
