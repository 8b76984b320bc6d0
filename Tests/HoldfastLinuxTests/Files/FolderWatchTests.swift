import HoldfastLinux
import Testing

/// The folders that a watch reaches.
@Suite struct FolderWatchTests {
  /// Watches `/a/b/c/d` where only some folders exist; `made` come into being after that many attempts.
  private func watched(_ existing: Set<String>, made: [(after: Int, path: String)] = []) throws -> [String] {
    var (existing, attempts, watched) = (existing, 0, [String]())
    try FolderWatch.watchClosest(to: "/a/b/c/d") { path in
      let exists = existing.contains(path)
      attempts += 1
      for step in made where step.after == attempts { existing.insert(step.path) }
      if exists { watched.append(path) }
      return exists
    }
    return watched
  }

  @Test func `a folder that exists is watched`() throws {
    #expect(try watched(["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d"]) == ["/a/b/c/d"])
  }

  @Test func `otherwise the closest one above it is`() throws {
    #expect(Set(try watched(["/", "/a"])) == ["/a"])
    #expect(Set(try watched(["/"])) == ["/"])
  }

  @Test func `a folder that is made between two attempts is watched too`() throws {
    // The attempt at /a/b/c/d fails, then all are made, and the watch is at /a/b/c.
    #expect(try watched(["/", "/a", "/a/b", "/a/b/c"], made: [(1, "/a/b/c/d")]).last == "/a/b/c/d")
    let steps = [(after: 3, path: "/a/b"), (after: 6, path: "/a/b/c"), (after: 9, path: "/a/b/c/d")]
    #expect(try watched(["/", "/a"], made: steps).last == "/a/b/c/d")
  }
}
