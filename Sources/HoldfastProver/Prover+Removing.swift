import HoldfastCore
import HoldfastLinux

extension Prover {
  /// Removes the enrolment of a device from the state folder, also a damaged one. The removal is durable when this returns.
  ///
  /// Nobody is told: the service and the device still accept a copy of the enrolment on this host until its token expires or is
  /// revoked. ``leave(_:exchange:)`` tells the service first.
  ///
  /// - Parameter device: The device.
  /// - Throws: ``ProverError/state(_:)`` if the device is not enrolled, the folder is of another kind, another process has been
  ///   writing for too long, or the disk refuses.
  public func unenroll(_ device: DeviceID) throws(ProverError) {
    do throws(StateFolderFault) { try folder.remove(device) } catch { throw .state(error) }
  }

  /// The same, unless another process has replaced the enrolment meanwhile.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - token: The token of the enrolment; nil for one that is damaged.
  /// - Throws: also ``StateFolderFault/replaced(_:)``.
  package func unenroll(_ device: DeviceID, holding token: [UInt8]?) throws(ProverError) {
    do throws(StateFolderFault) {
      guard try folder.remove(device, ifTokenIs: token) else { throw .replaced(device) }
    } catch { throw .state(error) }
  }

  /// Removes everything that provers keep in the state folder: all enrolments, waiting baselines, pins and posture rules. The removal is durable
  /// when this returns. The secret of this host stays, because other state folders use it too.
  ///
  /// After an interruption, the call may be repeated.
  ///
  /// - Returns: The number of enrolments that were removed. The folder is removed too if nothing else is in it.
  /// - Throws: ``ProverError/state(_:)`` if the folder does not exist or is of another kind, another process has been writing for
  ///   too long, or the disk refuses.
  @discardableResult
  public func wipe() throws(ProverError) -> Int {
    do throws(StateFolderFault) { return try folder.removeAll().enrolmentCount } catch { throw .state(error) }
  }
}
