package simulate

// What tests compare with.
var (
	AgeOptimal     = ageOptimal
	Azar           = azar
	Constant       = constantInterval
	EvenAllocation = evenAllocation
	Expected       = expectedFreshness
	LambdaCrawl    = lambdaCrawl
	Optimal        = optimal
	Proportional   = proportional
	ShortDuration  = shortDuration
)
