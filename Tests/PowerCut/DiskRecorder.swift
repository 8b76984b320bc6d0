import CPowerCut
import Glibc

/// Records what one thread changes below a folder, and makes one of its operations fail.
package final class DiskRecorder {
  /// The folder could not be looked at.
  package struct NoFolder: Error {}

  /// The changes so far.
  package private(set) var changes: [DiskChange] = []
  /// How many operations there were, whether they went well or not.
  package private(set) var operationCount = 0
  /// Which one fails.
  package var fault: DiskFault?
  /// Files and folders by inode.
  private var numbers: [UInt64: Int] = [:]
  private var nextNumber = 1

  /// Watches an empty folder.
  package init(folder: String) throws {
    var status = stat()
    guard unsafe stat(folder, &status) == 0 else { throw NoFolder() }
    numbers[UInt64(status.st_ino)] = 0
  }

  /// Watches an empty folder after laying `disk` out in it, as a process that starts now finds it. What was not brought to the
  /// disk before is still not there for good: the changes go on from it.
  package convenience init(folder: String, continuing disk: Disk) throws {
    try self.init(folder: folder)
    try disk.image(after: .all).write(to: folder)
    for (path, number) in disk.shownPaths {
      var status = stat()
      guard unsafe stat(folder + "/" + path, &status) == 0 else { throw NoFolder() }
      numbers[UInt64(status.st_ino)] = number
    }
    nextNumber = disk.nextNumber
  }

  /// Runs `body`, and records what it does in this thread.
  package func recording<Result>(_ body: () throws -> Result) rethrows -> Result {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe power_cut_watch(
      { unsafe recorder($0).begin(&$1!.pointee) }, { unsafe recorder($0).end($1!.pointee) }, context)
    defer { power_cut_stop() }
    return try body()
  }

  private func begin(_ event: inout power_cut_event) -> Int32 {
    guard unsafe concerns(event) else { return 0 }
    let index = operationCount
    operationCount += 1
    switch unsafe fault?.effect(on: index, isWrite: event.operation == POWER_CUT_WRITE && event.byte_count > 1) {
    case .error(let number):
      if unsafe event.operation == POWER_CUT_SYNCHRONIZE, let number = unsafe numbers[event.file] {
        changes.append(.synchronizeFailed(number))
      }
      return number
    case .half: unsafe event.byte_count /= 2
    case .none?, nil: break
    }
    return 0
  }

  private func end(_ event: power_cut_event) {
    guard unsafe concerns(event) else {
      // An inode that comes again.
      if unsafe event.operation == POWER_CUT_CREATE { unsafe numbers[event.file] = nil }
      return
    }
    unsafe changes.append(change(event))
  }

  private func change(_ event: power_cut_event) -> DiskChange {
    switch unsafe event.operation {
    case POWER_CUT_CREATE: return unsafe .makeFile(number(new: event.file), oldName(event))
    case POWER_CUT_MAKE_DIRECTORY:
      return unsafe .makeFolder(number(new: event.file), oldName(event))
    case POWER_CUT_LINK:
      return unsafe .link(
        known(event.file), DiskName(folder: known(event.new_directory), text: String(cString: event.new_name)))
    case POWER_CUT_RENAME:
      unsafe precondition(event.directory == event.new_directory)
      return unsafe .rename(known(event.file), from: oldName(event), to: String(cString: event.new_name))
    case POWER_CUT_EXCHANGE:
      unsafe precondition(event.directory == event.new_directory)
      return unsafe .exchange(
        known(event.file), oldName(event), with: known(event.new_file), String(cString: event.new_name))
    case POWER_CUT_UNLINK: return unsafe .unlink(oldName(event))
    case POWER_CUT_WRITE:
      let bytes = unsafe UnsafeRawBufferPointer(start: event.bytes, count: event.byte_count)
      return unsafe .write(known(event.file), offset: Int(event.offset), bytes: Array(bytes))
    case POWER_CUT_TRUNCATE: return unsafe .truncate(known(event.file), length: Int(event.offset))
    default: return unsafe .synchronize(known(event.file))
    }
  }

  /// Whether it is about a file or a name below the folder. SQLite's index of its log lives only in memory, whatever its file
  /// holds, and is made anew.
  private func concerns(_ event: power_cut_event) -> Bool {
    guard unsafe event.name != nil else { return unsafe numbers[event.file] != nil }
    return unsafe numbers[event.directory] != nil && !String(cString: event.name).hasSuffix("-shm")
  }

  private func known(_ inode: UInt64) -> Int { numbers[inode] ?? -1 }

  private func oldName(_ event: power_cut_event) -> DiskName {
    unsafe DiskName(folder: known(event.directory), text: String(cString: event.name))
  }

  private func number(new inode: UInt64) -> Int {
    numbers[inode] = nextNumber
    nextNumber += 1
    return nextNumber - 1
  }
}

private func recorder(_ context: UnsafeMutableRawPointer?) -> DiskRecorder {
  unsafe Unmanaged.fromOpaque(context!).takeUnretainedValue()
}
