package flags

// The groups of verbs in the help of the command.
const (
	AllInOne   = "All in one"
	StageVerbs = "A round, stage by stage"
	ReadVerbs  = "Look inside" // these change no crawl
	MergeVerbs = "Import and merge"
	StoreVerbs = "The store"
	SelfVerbs  = "The command"
)

// The groups of flags in the help of a verb.
const (
	NetworkGroup      = "The network"
	SelectionGroup    = "Which pages"
	OutputGroup       = "Clock and output"
	politenessGroup   = "Politeness and bandwidth"
	limitsGroup       = "Limits of a fetch"
	endlessSitesGroup = "Endless sites"
	nutchConfGroup    = "Nutch configuration"
)
