/// A disk below one folder: what the system shows of it, what is on it for good, and what lies between.
///
/// As POSIX has it, at its worst: `fsync` of a file brings its contents to the disk and not its name; names are brought there
/// by `fsync` of their folder. Whatever else was done may survive a power cut or not, each change for itself.
package struct Disk: Sendable {
  var contents: [Int: DiskContents] = [:]
  var names: [Int: DiskNames] = [0: DiskNames()]

  /// An empty folder.
  package init() {}

  /// The disk after `changes`.
  package init(_ changes: some Sequence<DiskChange>) {
    for change in changes { apply(change) }
  }

  /// A number that nothing has.
  var nextNumber: Int { (Array(contents.keys) + names.keys).max().map { $0 + 1 } ?? 0 }

  /// The files, by path.
  var shownPaths: [String: Int] {
    var paths: [String: Int] = [:]
    func add(_ folder: Int, at prefix: String) {
      for (name, number) in names[folder]?.shown ?? [:] {
        paths[prefix + name] = number
        add(number, at: prefix + name + "/")
      }
    }
    add(0, at: "")
    return paths
  }

  /// Does what `change` says.
  package mutating func apply(_ change: DiskChange) {
    switch change {
    case .makeFile(let number, let name):
      contents[number] = DiskContents()
      names[name.folder]?.change(.put(name.text, number))
    case .makeFolder(let number, let name):
      names[number] = DiskNames()
      names[name.folder]?.change(.put(name.text, number))
    case .link(let number, let name): names[name.folder]?.change(.put(name.text, number))
    case .rename(let number, let from, let to): names[from.folder]?.change(.move(from.text, to, number))
    case .exchange(let one, let name, let other, let otherName):
      names[name.folder]?.change(.exchange(name.text, other, otherName, one))
    case .unlink(let name): names[name.folder]?.change(.remove(name.text))
    case .write(let number, let offset, let bytes): contents[number]?.change(.write(offset: offset, bytes))
    case .truncate(let number, let length): contents[number]?.change(.truncate(length))
    case .synchronize(let number):
      contents[number]?.synchronize()
      names[number]?.synchronize()
    case .synchronizeFailed(let number): contents[number]?.lose()
    }
  }
}

/// The bytes of a file.
struct DiskContents: Sendable {
  enum Change: Sendable {
    case write(offset: Int, [UInt8])
    case truncate(Int)
  }

  /// The files as every process sees them, as long as there is power.
  private(set) var shown: [UInt8] = []
  private(set) var durable: [UInt8] = []
  /// The changes that are not on the disk for good.
  private(set) var pending: [Change] = []

  mutating func change(_ change: Change) {
    change.apply(to: &shown)
    pending.append(change)
  }

  mutating func synchronize() {
    for change in pending { change.apply(to: &durable) }
    pending = []
  }

  /// The system takes for written what was not.
  mutating func lose() {
    pending = []
  }
}

extension DiskContents.Change {
  func apply(to bytes: inout [UInt8]) {
    switch self {
    case .write(let offset, let new):
      let end = offset + new.count
      if bytes.count < end { bytes.append(contentsOf: repeatElement(0, count: end - bytes.count)) }
      bytes.replaceSubrange(offset..<end, with: new)
    case .truncate(let length):
      if bytes.count > length { bytes.removeLast(bytes.count - length) }
      bytes.append(contentsOf: repeatElement(0, count: length - bytes.count))
    }
  }
}

/// The names in a folder.
struct DiskNames: Sendable {
  enum Change: Sendable {
    case put(String, Int)
    case move(String, String, Int)
    /// Both names, each with what it stands for afterwards.
    case exchange(String, Int, String, Int)
    case remove(String)
  }

  private(set) var shown: [String: Int] = [:]
  private(set) var durable: [String: Int] = [:]
  private(set) var pending: [Change] = []

  mutating func change(_ change: Change) {
    change.apply(to: &shown)
    pending.append(change)
  }

  mutating func synchronize() {
    (durable, pending) = (shown, [])
  }
}

extension DiskNames.Change {
  func apply(to names: inout [String: Int]) {
    switch self {
    case .put(let name, let number): names[name] = number
    case .move(let old, let new, let number):
      names[old] = nil
      names[new] = number
    case .exchange(let one, let number, let other, let otherNumber):
      names[one] = number
      names[other] = otherNumber
    case .remove(let name): names[name] = nil
    }
  }
}
