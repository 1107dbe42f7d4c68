package doctor

import "context"

func checkTemporal(context.Context, Config) []Finding { return nil }
