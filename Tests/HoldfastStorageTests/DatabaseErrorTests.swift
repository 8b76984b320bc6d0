import Glibc
import Testing

import HoldfastStorage

@Suite struct DatabaseErrorTests {
  @Test(
    arguments: [
      (5, 0, DatabaseError.busy), (6, 0, .busy), (13, 0, .full), (11, 0, .corrupt), (26, 0, .corrupt),
      (8, 0, .readOnly),
      (3, 0, .permission), (23, 0, .permission), (14, ENOENT, .cannotOpen), (14, EACCES, .permission),
      (14, EPERM, .permission), (10, ENOSPC, .full), (10, EDQUOT, .full), (10, EROFS, .readOnly),
      (778, EROFS, .readOnly),
      (14, EROFS, .readOnly), (10, EIO, .other(code: 10)),
      (19, 0, .constraint),
      (21, 0, .misuse), (25, 0, .misuse), (7, 0, .other(code: 7)), (517, 0, .busy), (267, 0, .corrupt),
      (1034, EIO, .other(code: 1034)),
    ] as [(Int32, Int32, DatabaseError)])
  func `a result code becomes its error`(code: Int32, number: Int32, error: DatabaseError) {
    #expect(DatabaseError(code: code, systemErrorNumber: number) == error)
  }
}
