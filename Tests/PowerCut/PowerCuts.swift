/// Every disk that a power cut may leave of a recording, with how much of it was done.
package struct PowerCuts {
  private let changes: [DiskChange]

  package init(_ changes: [DiskChange]) {
    self.changes = changes
  }

  /// Calls `body` with each. `stage` says how far the recorded work had come after that many changes: of disks that are alike at
  /// the same stage, only the first is looked at.
  package func forEach(
    of kinds: [Survival] = Survival.kinds, stage: (Int) -> Int, _ body: (PowerCut) throws -> Void
  ) rethrows {
    var disk = Disk()
    var seen: Set<[Int]> = []
    func look(_ disk: Disk, _ survival: Survival, _ count: Int, isTorn: Bool = false) throws {
      let cut = PowerCut(changeCount: count, survival: survival, isTorn: isTorn, image: disk.image(after: survival))
      if seen.insert([cut.image.hashValue, stage(count)]).inserted { try body(cut) }
    }
    for survival in kinds { try look(disk, survival, 0) }
    for (index, change) in changes.enumerated() {
      if case .write(let number, let offset, let bytes) = change {
        for length in Set([bytes.count / 2, bytes.count / 512 / 2 * 512]) where length > 0 {
          var torn = disk
          torn.apply(.write(number, offset: offset, bytes: Array(bytes[..<length])))
          try look(torn, .all, index, isTorn: true)
        }
      }
      disk.apply(change)
      for survival in kinds { try look(disk, survival, index + 1) }
    }
  }
}

/// One disk that a power cut may leave.
package struct PowerCut: Sendable, CustomStringConvertible {
  /// How many changes were made before.
  package let changeCount: Int
  package let survival: Survival
  /// Whether a part of the next write was made too.
  package let isTorn: Bool
  package let image: DiskImage

  package var description: String { "change \(changeCount), \(survival)\(isTorn ? ", torn" : "")" }
}
