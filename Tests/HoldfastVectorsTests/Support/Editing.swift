import HoldfastFormats
import HoldfastVectors
import TestSupport

/// The members of an object, to be changed.
struct Members {
  var list: [(String, JSONValue)]

  subscript(name: String) -> JSONValue? {
    get { list.first { $0.0 == name }?.1 }
    set {
      let index = list.firstIndex { $0.0 == name }
      switch (index, newValue) {
      case (let index?, let value?): list[index].1 = value
      case (let index?, nil): list.remove(at: index)
      case (nil, let value?): list.append((name, value))
      case (nil, nil): break
      }
    }
  }
}

extension JSONValue {
  /// The same object with its members changed.
  func changed(_ change: (inout Members) -> Void) -> JSONValue {
    var members = Members(list: members ?? [])
    change(&members)
    return .object(members.list)
  }

  /// The same file with only the tests for which `change`, given their group's type, returns true; it may change them.
  func keepingTests(_ change: (String, inout Members) -> Bool) -> JSONValue {
    var count: UInt64 = 0
    let groups = (self["testGroups"]?.elements ?? []).compactMap { group -> JSONValue? in
      let type = group["type"]?.text ?? ""
      let tests = (group["tests"]?.elements ?? []).compactMap { test -> JSONValue? in
        var members = Members(list: test.members ?? [])
        return change(type, &members) ? .object(members.list) : nil
      }
      count += UInt64(tests.count)
      return tests.isEmpty ? nil : group.changed { $0["tests"] = .array(tests) }
    }
    return changed {
      $0["testGroups"] = .array(groups)
      $0["numberOfTests"] = .integer(count)
    }
  }

  /// The names of the members that tests of `type` have, each once.
  func testMembers(ofType type: String) -> [String] {
    var names: [String] = []
    _ = keepingTests { testType, test in
      if testType == type {
        for (name, _) in test.list where !names.contains(name) { names.append(name) }
      }
      return true
    }
    return names
  }

  /// Another value of the same type: a flipped bit in the digits at `place` (0 at the start, 1 at the end), another number,
  /// a longer text. Nil for what is empty or null.
  func spoiled(at place: Double) -> JSONValue? {
    switch self {
    case .string(let text):
      var characters = Array(text)
      guard !characters.isEmpty else { return nil }
      let index = Int(Double(characters.count - 1) * place)
      guard let digit = characters[index].hexDigitValue, text.allSatisfy(\.isHexDigit) else {
        return .string(text + "x")
      }
      characters[index] = Character(String(digit ^ 1, radix: 16))
      return .string(String(characters))
    case .integer(let number): return .integer(number ^ 1)
    case .array(let elements):
      guard let last = elements.last?.spoiled(at: place) else { return nil }
      return .array(elements.dropLast() + [last])
    case .bool(let flag): return .bool(!flag)
    case .object, .null: return nil
    }
  }
}

/// A committed file as JSON.
func committedFile(_ name: String) throws -> JSONValue {
  try JSONValue(parsing: readFile("\(vectorsFolder)/\(name)"), byteLimit: VectorFile.maximumByteCount)
}
