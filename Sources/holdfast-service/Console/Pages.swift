#if Service
import HoldfastFormats
import HoldfastService

/// The parts that all pages have: the head, the menu, the operator, and a notice.
struct FrameView {
  let title: String
  let stylesheet = Stylesheet.address
  let icon = Stylesheet.iconAddress
  let root = ConsoleRoutes.root
  /// The operator; nil if nobody is signed in.
  var caller: String?
  var formToken = ""
  var menu: [MenuView] = []
  /// The action that was carried out, as a sentence.
  var notice: String?
  /// The mistake, as a sentence.
  var fault: String?

  /// The frame of a page before signing in.
  init(_ title: String) { self.title = title }

  /// The frame of an operator's page.
  ///
  /// - Parameter kind: The kind whose entry of the menu is current.
  init(_ title: String, _ session: OperatorSession, kind: String) {
    self.title = title
    (caller, formToken) = (session.caller.name, session.formToken)
    menu = [MenuView(title: "Overview", address: ConsoleRoutes.root, isCurrent: kind.isEmpty)]
    for entry in ConsoleKind.all {
      // A list that needs a filter is reached from the record that it belongs to.
      guard let list = AdministrationOperation.list(entry.path), session.caller.scopes.contains(list.scope),
        !list.query.contains(where: \.isRequired)
      else { continue }
      menu.append(
        MenuView(title: entry.title, address: list.consolePath + entry.query, isCurrent: entry.path == kind))
    }
  }
}

struct MenuView {
  let title: String
  let address: String
  let isCurrent: Bool
}

/// A link to another page, or to the form of an operation.
struct LinkView {
  let title: String
  let address: String
  var isDestructive = false

  init(_ title: String, _ address: String, isDestructive: Bool = false) {
    (self.title, self.address, self.isDestructive) = (title, address, isDestructive)
  }
}

/// Rows with the same columns. Where there is no room for a table, each is a card.
struct TableView {
  let caption: String
  let columns: [String]
  let rows: [RowView]
  let isEmpty: Bool

  init(_ caption: String, _ columns: [String], _ rows: [[CellView]]) {
    (self.caption, self.columns, isEmpty) = (caption, columns.map(\.words), rows.isEmpty)
    self.rows = rows.map { RowView(cells: $0) }
  }
}

struct RowView {
  let cells: [CellView]
}

/// The first page: what waits, and what happened lately.
struct OverviewPage {
  let frame: FrameView
  /// Whether the operator may read.
  var isReadable = false
  var waiting = TableView("", [], [])
  var plots: [PlotView] = []
  var changes = TableView("", [], [])
}

/// A page of a list.
struct ListPage {
  var frame: FrameView
  var fields: [FieldView] = []
  /// The address of the list.
  let address: String
  var links: [LinkView] = []
  var table = TableView("", [], [])
  /// The timeline in place of the table.
  var days: [DayView] = []
  var isTimeline = false
  /// The address of the next page.
  var next: String?
  /// The address of the first page, on every other one.
  var first: String?
}

/// The entries of one day in a timeline.
struct DayView {
  let day: String
  var entries: [EntryView]
}

struct EntryView {
  let clock: String
  let machineTime: String
  let event: String
  let cells: [CellView]
}

/// The members of one record.
struct MembersView {
  let cells: [CellView]
}

/// A page of one record.
struct RecordPage {
  let frame: FrameView
  let members: MembersView
  let related: [LinkView]
  let actions: [LinkView]
  let hasActions: Bool
}

/// A page that carries out an operation.
struct FormPage {
  let frame: FrameView
  let summary: String
  /// The record that the operation is about.
  let members: MembersView?
  let fields: [FieldView]
  /// The address that takes the form.
  let address: String
  let submit: String
  let isDestructive: Bool
  let cancel: String
}

/// A page with a secret that is shown only once.
struct SecretPage {
  let frame: FrameView
  let summary: String
  let secret: String
  let label: String
  var picture: PictureView?
  let members: MembersView
  let record: LinkView
}

struct StatisticsPage {
  let frame: FrameView
  let spans: [MenuView]
  let plots: [PlotView]
}

/// A page that says what is wrong.
struct FaultPage {
  let frame: FrameView
  let detail: String
  let requestID: String
  let home: String
}

struct SignInPage {
  let frame: FrameView
  let address: String
}
#endif
