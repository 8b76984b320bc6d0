import Glibc
import PowerCut
import TestSupport
import Testing

import HoldfastLinux

@Suite struct FolderReplacementTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func makeFolder(_ name: String, _ files: [String: UInt8]) throws {
    try Files.createPrivateDirectory(at: folder.file(name))
    for (file, byte) in files {
      try Files.writeFileAtomically([byte], at: folder.file("\(name)/\(file)"), overwrite: true)
    }
  }

  @Test func `names are sorted, and no more than the limit`() throws {
    try makeFolder("state", ["b": 1, "a": 2, ".new-a": 3])
    #expect(try Files.names(inFolder: folder.file("state"), limit: 3) == [".new-a", "a", "b"])
    #expect(throws: FileError(.tooLarge, at: folder.file("state"))) {
      try Files.names(inFolder: folder.file("state"), limit: 2)
    }
  }

  @Test func `what is no folder has no names`() throws {
    try folder.makeFile("file", [1])
    try makeFolder("state", [:])
    #expect(unsafe symlink(folder.file("state"), folder.file("link")) == 0)
    for (name, kind) in [("file", FileError.Kind.notDirectory), ("link", .symbolicLink), ("nothing", .notFound)] {
      #expect(throws: FileError(kind, at: folder.file(name))) {
        try Files.names(inFolder: folder.file(name), limit: 10)
      }
      #expect(throws: FileError(kind, at: folder.file(name))) { try Files.removeFlatFolder(at: folder.file(name)) }
    }
    #expect(try folder.names() == ["file", "link", "state"])
  }

  @Test func `a folder takes a free name, and exchanges names with another one`() throws {
    try makeFolder("new", ["file": 1])
    #expect(try !Files.renameFolder(at: folder.file("new"), to: "state"))
    #expect(try folder.names() == ["state"])
    try makeFolder("new", ["file": 2])
    #expect(try Files.renameFolder(at: folder.file("new"), to: "state"))
    #expect(try Files.readFile(at: folder.file("state/file"), limit: 1) == [2])
    #expect(try Files.readFile(at: folder.file("new/file"), limit: 1) == [1])
    try Files.removeFlatFolder(at: folder.file("new"))
    #expect(try folder.names() == ["state"])
    #expect(throws: FileError(.notFound, at: folder.file("new"))) {
      try Files.renameFolder(at: folder.file("new"), to: "state")
    }
  }

  @Test func `a folder that holds another one is not removed`() throws {
    try makeFolder("state", [:])
    try makeFolder("state/inner", [:])
    #expect(throws: FileError(.isDirectory, at: folder.file("state"))) {
      try Files.removeFlatFolder(at: folder.file("state"))
    }
    #expect(try folder.names() == ["state"])
  }

  @Test func `a power cut at any point of a replacement leaves the old folder or the new one, each whole`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    let versions: [[String: [UInt8]]] = [["token": [1], "manifest": [1, 1]], ["token": [2, 2], "manifest": [2]]]
    var changeCounts: [Int] = []
    for files in versions {
      try recorder.recording {
        try Files.createPrivateDirectory(at: place.file(".new"))
        for (name, bytes) in files {
          try Files.writeFileAtomically(bytes, at: place.file(".new/\(name)"), overwrite: true)
        }
        if try Files.renameFolder(at: place.file(".new"), to: "state") {
          try Files.removeFlatFolder(at: place.file(".new"))
        }
      }
      changeCounts.append(recorder.changes.count)
    }
    let stage = { (count: Int) in changeCounts.prefix { $0 <= count }.count }
    var wrong: [String] = []
    var seen: Set<Int> = []
    PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      let stage = stage(cut.changeCount)
      let found = cut.image.files.filter { $0.key.hasPrefix("state/") }
      let allowed = (max(stage - 1, -1)...min(stage, versions.count - 1)).map { index in
        index < 0 ? [:] : Dictionary(uniqueKeysWithValues: versions[index].map { ("state/" + $0.key, $0.value) })
      }
      guard let index = allowed.firstIndex(of: found), stage < versions.count || index == 0 else {
        wrong.append("\(cut)")
        return
      }
      seen.insert(stage * 2 + index)
    }
    #expect(wrong.isEmpty)
    // Nothing, the first, the first and the second, the second: each was seen.
    #expect(seen == [0, 1, 2, 3, 4])
  }
}
