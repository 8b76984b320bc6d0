/// Which of the changes that were not brought to the disk are there after all.
package enum Survival: Sendable, Hashable {
  /// All: the process was killed, and the system went on.
  case all
  /// None.
  case none
  /// Only the names, as on a file system that keeps a journal of these.
  case namesOnly
  /// Only the contents.
  case contentsOnly
  /// Only the last change of each file and folder.
  case lastOfEach
  /// Of each file and folder all but the first change.
  case allButFirst
  /// Each change or not, by lot.
  case some(seed: UInt64)

  /// One of each kind, and two lots.
  package static let kinds: [Survival] = [
    .all, .none, .namesOnly, .contentsOnly, .lastOfEach, .allButFirst, .some(seed: 1), .some(seed: 2),
  ]
}

/// Files and folders by their paths below the watched folder.
package struct DiskImage: Sendable, Hashable {
  package internal(set) var folders: [String]
  package internal(set) var files: [String: [UInt8]]

  package init(folders: [String] = [], files: [String: [UInt8]] = [:]) {
    (self.folders, self.files) = (folders, files)
  }
}

extension Disk {
  /// The files that are found once there is power again.
  package func image(after survival: Survival) -> DiskImage {
    var lots = Lots(survival)
    var image = DiskImage()
    // In order of number, so that a lot always falls on the same change.
    let namesThere = names.sorted { $0.key < $1.key }.map { number, names in
      (number, names.surviving(survival, &lots))
    }
    let contentsThere = contents.sorted { $0.key < $1.key }.map { number, contents in
      (number, contents.surviving(survival, &lots))
    }
    image.add(
      0, as: "", names: Dictionary(uniqueKeysWithValues: namesThere),
      contents: Dictionary(uniqueKeysWithValues: contentsThere))
    return image
  }
}

extension DiskImage {
  fileprivate mutating func add(_ folder: Int, as path: String, names: [Int: [String: Int]], contents: [Int: [UInt8]]) {
    for (name, number) in (names[folder] ?? [:]).sorted(by: { $0.key < $1.key }) {
      let path = path.isEmpty ? name : path + "/" + name
      if let bytes = contents[number] {
        files[path] = bytes
      } else {
        folders.append(path)
        add(number, as: path, names: names, contents: contents)
      }
    }
  }
}

extension DiskContents {
  fileprivate func surviving(_ survival: Survival, _ lots: inout Lots) -> [UInt8] {
    switch survival {
    case .all, .contentsOnly: return shown
    case .none, .namesOnly: return durable
    case .lastOfEach, .allButFirst, .some:
      var bytes = durable
      for change in lots.choose(from: pending) { change.apply(to: &bytes) }
      return bytes
    }
  }
}

extension DiskNames {
  fileprivate func surviving(_ survival: Survival, _ lots: inout Lots) -> [String: Int] {
    switch survival {
    case .all, .namesOnly: return shown
    case .none, .contentsOnly: return durable
    case .lastOfEach, .allButFirst, .some:
      var names = durable
      for change in lots.choose(from: pending) { change.apply(to: &names) }
      return names
    }
  }
}

/// Chooses changes, the same ones in every run.
private struct Lots {
  private let survival: Survival
  private var state: UInt64

  init(_ survival: Survival) {
    self.survival = survival
    state = if case .some(let seed) = survival { seed } else { 0 }
  }

  mutating func choose<Change>(from pending: [Change]) -> [Change] {
    switch survival {
    case .lastOfEach: return Array(pending.suffix(1))
    case .allButFirst: return Array(pending.dropFirst())
    default:
      var chosen: [Change] = []
      for change in pending {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        if state >> 63 == 1 { chosen.append(change) }
      }
      return chosen
    }
  }
}
