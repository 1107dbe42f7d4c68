package monitor

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics shows the last State of a Watch to Prometheus. What is of the whole pipeline every process shows alike: take the maximum
// of it, not the sum. Where something is not known its metric is missing.
func (w *Watch) Metrics() prometheus.Collector { return collector{w} }

type collector struct{ watch *Watch }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("oncepost_"+name, help, labels, nil)
}

var (
	descDatabaseUp   = desc("database_up", "1 if the database can be read and written by this process.")
	descTemporalUp   = desc("temporal_up", "1 if Temporal answers this process.")
	descPending      = desc("outbox_pending_messages", "Messages in outbox_messages; above 10,000 an estimate.")
	descOldest       = desc("outbox_oldest_message_age_seconds", "Age of the oldest row known of in outbox_messages.")
	descWaiting      = desc("outbox_waiting_seconds", "For how long a row of outbox_messages has been seen waiting.")
	descFailedRows   = desc("outbox_failed_messages", "Messages in outbox_failed.")
	descProcesses    = desc("processes_alive", "Processes that live, by role.", "role")
	descOwned        = desc("outbox_owned_shards", "Shards of the outbox that a relay which lives reads.")
	descWorkflows    = desc("workflows", "Workflows by Temporal's visibility, by what they are at.", "state")
	descBacklog      = desc("task_queue_backlog_tasks", "Tasks that wait in a task queue, about.", "task_queue", "kind")
	descBacklogAge   = desc("task_queue_backlog_age_seconds", "For how long the oldest task of a task queue has waited.", "task_queue", "kind")
	descStopped      = desc("sending_stopped", "1 while sending is stopped.")
	descQuotaDay     = desc("ses_quota_messages", "Mails that the SES account may send in 24 hours; -1 is no limit.")
	descQuotaUsed    = desc("ses_quota_used_messages", "Mails that the SES account has sent in the last 24 hours.")
	descQuotaRate    = desc("ses_quota_rate_messages_per_second", "Mails a second that the SES account may send; -1 is no limit.")
	descCondition    = desc("condition_active", "1 while a condition holds, as this process sees it.", "condition")
	descAlerts       = desc("alerts_total", "Notices of conditions by this process: told, and failed, which are tried again.", "result")
	descRelayStarts  = desc("relay_starts_total", "Starts of workflows by this process's relay, by what they came to.", "outcome")
	descRelayDeleted = desc("relay_deleted_messages_total", "Rows that this process's relay has deleted after their start.")
	descRelayReads   = desc("relay_reads_total", "Reads of outbox_messages by this process's relay.")
	descRelayFlight  = desc("relay_starts_in_flight", "Starts under way in this process's relay.")
	descRelayLimit   = desc("relay_start_limit", "Starts that this process's relay allows itself at once.")
	descRelayShards  = desc("relay_owned_shards", "Shards that this process's relay owns.")
	descRelayRead    = desc("relay_read_age_seconds", "How long ago this process's relay has read the outbox.")
	descSends        = desc("sends_total", "Answers of SES to this process's worker, by what they came to.", "outcome")
)

// Describe implements prometheus.Collector. It is unchecked: what is not known is missing.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c.watch.State()
	if s == nil {
		return
	}
	o := output{out}
	o.gauge(descDatabaseUp, bit(s.Database.OK))
	o.gauge(descTemporalUp, bit(s.Temporal.OK))
	if s.Database.OK {
		o.outbox(s)
	}
	o.workflows(s)
	holds := map[string]float64{}
	for _, cond := range s.Conditions {
		holds[cond.Name] = 1
	}
	for _, r := range s.Raised {
		if r.event && !r.over {
			holds[r.Name] = 1
		}
	}
	for _, name := range order {
		if s.unknown[name] && holds[name] == 0 {
			continue
		}
		o.gauge(descCondition, holds[name], name)
	}
	o.counter(descAlerts, c.watch.teller.told.Load(), "told")
	o.counter(descAlerts, c.watch.teller.fails.Load(), "failed")
	if c.watch.cfg.Self != nil {
		o.self(c.watch.cfg.Self())
	}
}

type output struct{ to chan<- prometheus.Metric }

func (o output) gauge(d *prometheus.Desc, v float64, labels ...string) {
	o.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (o output) counter(d *prometheus.Desc, v int64, labels ...string) {
	o.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (o output) outbox(s *State) {
	if s.Outbox.Error == "" {
		o.gauge(descOldest, s.Outbox.Oldest)
		o.gauge(descFailedRows, float64(s.Outbox.Failed.Rows))
		o.gauge(descPending, float64(s.Outbox.Pending.Rows))
	}
	o.gauge(descWaiting, s.Outbox.Waiting)
	alive := map[string]int{RoleRelay: 0, RoleWorker: 0, RoleWatch: 0}
	for _, p := range s.Processes {
		if _, known := alive[p.Role]; known && p.Alive {
			alive[p.Role]++
		}
	}
	for role, n := range alive {
		o.gauge(descProcesses, float64(n), role)
	}
	owned := 0
	for _, shard := range s.Shards {
		if shard.Owner != "" {
			owned++
		}
	}
	o.gauge(descOwned, float64(owned))
	o.gauge(descStopped, bit(len(s.Stops) > 0))
	if q := s.Quota; q != nil {
		o.gauge(descQuotaDay, q.PerDay)
		o.gauge(descQuotaUsed, q.SentLast)
		o.gauge(descQuotaRate, q.PerSecond)
	}
}

func (o output) workflows(s *State) {
	for state, n := range map[string]*int64{
		"running": s.Workflows.Running, "parked": s.Workflows.Parked, "parked_long": s.Workflows.ParkedLong, "stuck": s.Workflows.Stuck,
		"tasks_failing": s.Workflows.TasksFail, "failed_last_hour": s.Workflows.Failed,
	} {
		if n != nil {
			o.gauge(descWorkflows, float64(*n), state)
		}
	}
	for _, q := range s.Queues {
		o.gauge(descBacklog, float64(q.Backlog), q.Name, q.Kind)
		o.gauge(descBacklogAge, q.BacklogAge, q.Name, q.Kind)
	}
}

// self are the numbers of this process's own relay and worker.
func (o output) self(p Published) {
	if r := p.Relay; r != nil {
		for outcome, n := range map[string]int64{"started": r.Started, "duplicate": r.Duplicates, "failed": r.Failed, "retried": r.Retried} {
			o.counter(descRelayStarts, n, outcome)
		}
		o.counter(descRelayDeleted, r.Deleted)
		o.counter(descRelayReads, r.Polls)
		o.gauge(descRelayFlight, float64(r.InFlight))
		o.gauge(descRelayLimit, float64(r.Limit))
		o.gauge(descRelayShards, float64(len(r.Shards)))
		o.gauge(descRelayRead, r.ReadAgo)
	}
	if w := p.Worker; w != nil {
		for outcome, n := range w.Sends {
			o.counter(descSends, n, outcome)
		}
	}
}
