import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// A change of a state folder that an app may have to react to. Another process, or the app itself, may have made it.
public enum ProverEvent: Sendable, Equatable {
  /// A device was enrolled, or its enrolment replaced.
  case enrolled(DeviceID)
  /// The enrolment of a device was removed.
  case removed(DeviceID)
  /// No enrolment is left. It follows the `removed` of the last ones.
  case wiped
  /// The use of an enrolment has changed: its token has expired, its offline limit is reached, or it is damaged.
  case validityChanged(DeviceID, EnrolmentState.Validity)
  /// The issuer's settings for the app have changed; nil if there are none any more.
  case settingsChanged(DeviceID, AppSettings?)
  /// The secret of this host is another one, or gone: another user, another installation of the app, or another host. The enrolments
  /// before are of no use.
  case hostSecretChanged
}

/// The state of a state folder at one moment, to compare with a later one.
public struct ProverMoment: Sendable, Equatable {
  struct Device: Sendable, Equatable {
    let id: DeviceID
    /// The token and its configuration, whose digest the file `enrolment.json` has; nil if the enrolment cannot be read.
    let token: [UInt8]?
    let validity: EnrolmentState.Validity
    let settings: AppSettings?
  }

  let devices: [Device]
  /// A digest of the secret of this host; nil if there is none that can be read.
  let hostSecret: Digest?

  /// Returns what has changed since an earlier moment: first what is gone, then what is new or different.
  func events(since earlier: ProverMoment) -> [ProverEvent] {
    var events: [ProverEvent] = hostSecret == earlier.hostSecret ? [] : [.hostSecretChanged]
    for before in earlier.devices where !devices.contains(where: { $0.id == before.id }) {
      events.append(.removed(before.id))
    }
    if devices.isEmpty, !earlier.devices.isEmpty { events.append(.wiped) }
    for device in devices {
      let before = earlier.devices.first { $0.id == device.id }
      if device.token != before?.token, device.token != nil || before == nil { events.append(.enrolled(device.id)) }
      if let before, device.validity != before.validity {
        events.append(.validityChanged(device.id, device.validity))
      }
      if device.settings != before?.settings { events.append(.settingsChanged(device.id, device.settings)) }
    }
    return events
  }
}

extension Prover {
  /// Returns the present state of the state folder. A folder that does not exist has no enrolments.
  ///
  /// - Throws: ``ProverError/state(_:)`` if the folder is of another kind or cannot be read.
  public func moment() throws(ProverError) -> ProverMoment {
    var states: [EnrolmentState] = []
    do throws(ProverError) { states = try status(now: host.unixSeconds()) } catch {
      guard case .state(.nothingEnrolled) = error else { throw error }
    }
    let devices = states.filter { !isGone($0) }.map { state in
      ProverMoment.Device(
        id: state.device, token: (try? state.enrolment.get())?.token, validity: state.validity, settings: state.settings
      )
    }
    return ProverMoment(devices: devices, hostSecret: host.secretMark())
  }

  /// Returns whether an enrolment was removed while it was read, and only looks damaged because of that.
  private func isGone(_ state: EnrolmentState) -> Bool {
    guard case .failure = state.enrolment else { return false }
    do throws(StateFolderFault) { return try folder.entry(of: state.device) == nil } catch { return false }
  }

  /// Returns what has changed since an earlier moment, and the present one, for the next call. It also notices what only the time
  /// has changed.
  ///
  /// - Throws: the errors of ``moment()``.
  public func changes(since earlier: ProverMoment) throws(ProverError) -> (events: [ProverEvent], moment: ProverMoment)
  {
    let now = try moment()
    return (now.events(since: earlier), now)
  }

  /// Returns the changes as they come, until the task that reads them is cancelled or the sequence is released.
  ///
  /// The kernel reports them (inotify(7)), to a thread of the sequence's own; no timer runs. What only the time changes, such as the
  /// end of a token, is reported with the next change of a file; ``changes(since:)`` finds it whenever it is called.
  ///
  /// - Parameter earlier: the moment from which changes count; nil for the present.
  /// - Returns: the changes. The sequence ends with an error of ``moment()``, or with ``ProverError/noThread`` if the system has no
  ///   thread or watch for it.
  public func events(since earlier: ProverMoment? = nil) -> AsyncThrowingStream<ProverEvent, any Error> {
    AsyncThrowingStream { continuation in
      guard let stop = try? WakeUp() else { return continuation.finish(throwing: ProverError.noThread) }
      continuation.onTermination = { _ in stop.raise() }
      let isStarted = Thread.detach {
        do { try report(since: earlier, to: continuation, until: stop) } catch { continuation.finish(throwing: error) }
      }
      if !isStarted { continuation.finish(throwing: ProverError.noThread) }
    }
  }

  private func report(
    since earlier: ProverMoment?, to continuation: AsyncThrowingStream<ProverEvent, any Error>.Continuation,
    until stop: WakeUp
  ) throws(ProverError) {
    do throws(SystemError) {
      let watch = try FolderWatch()
      var last = earlier
      repeat {
        // The watches come first, so that nothing happens between a look and its watch.
        for path in watchedFolders() { try watch.watch(path) }
        do throws(ProverError) {
          let now = try moment()
          for event in now.events(since: last ?? now) { continuation.yield(event) }
          last = now
        } catch { return continuation.finish(throwing: error) }
      } while watch.wait(until: stop)
    } catch { throw .noThread }
    continuation.finish()
  }

  /// The folders in which the state changes.
  private func watchedFolders() -> [String] {
    var paths = [folder.path, folder.devicesPath]
    if let place = host.secretFolder() { paths.append(place) }
    paths += ((try? folder.entries()) ?? []).map(\.folder.path)
    return paths
  }
}
