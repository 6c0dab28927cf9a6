"""Running a step benchmark: the same loop, limits, reply store and journal for every suite, by command or as a job."""
