package devtemporal

import (
	"maps"
	"net/url"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

// historyShards is fixed when a database is made.
const historyShards = 4

const clusterName = "active"

// fileStore is the configuration of a database file. WAL makes it about 2.5 times as fast as a plain file;
// synchronous=1 (NORMAL) may lose the last moments when the machine crashes, not when the process does.
func fileStore(file string) *config.SQL {
	return &config.SQL{
		PluginName: sqlite.PluginName,
		// The plugin puts it into a URI as it is.
		DatabaseName:      (&url.URL{Path: file}).EscapedPath(),
		ConnectAttributes: map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "1"},
	}
}

// memoryStore is a database that lives as long as something has it open.
func memoryStore(name string) *config.SQL {
	return &config.SQL{
		PluginName:        sqlite.PluginName,
		DatabaseName:      name,
		ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
	}
}

func serverConfig(store *config.SQL, p ports) *config.Config {
	frontend := localhost(p.Frontend)
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: "127.0.0.1"},
		},
		Persistence: config.Persistence{
			DefaultStore:     sqlite.PluginName,
			VisibilityStore:  sqlite.PluginName,
			NumHistoryShards: historyShards,
			DataStores:       map[string]config.DataStore{sqlite.PluginName: {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			"frontend": service(p.Frontend),
			"history":  service(p.history),
			"matching": service(p.matching),
			"worker":   service(p.worker),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: frontend},
	}
}

func service(port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: "127.0.0.1"}}
}

// hosts names each service's one address, so that no membership protocol runs.
func hosts(p ports) map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(localhost(p.Frontend)),
		primitives.HistoryService:  static.SingleLocalHost(localhost(p.history)),
		primitives.MatchingService: static.SingleLocalHost(localhost(p.matching)),
		primitives.WorkerService:   static.SingleLocalHost(localhost(p.worker)),
	}
}

// unlimited is a rate that one machine does not reach: the defaults are made for a server shared by many.
const unlimited = 1_000_000

// dynamicConfig is the server's, with what is set over it.
func dynamicConfig(over map[string]any) dynamicconfig.StaticClient {
	values := map[string]any{
		// Priority and rate limits of a task queue are exact only with one partition.
		"matching.numTaskqueueReadPartitions":  1,
		"matching.numTaskqueueWritePartitions": 1,
		"matching.enableFairness":              true,
		// A search attribute or namespace is usable soon after it is made.
		"system.forceSearchAttributesCacheRefreshOnRead": true,
		"system.namespaceCacheRefreshInterval":           time.Second,
		// Tests create namespaces whose closed workflows are soon deleted.
		"system.namespaceMinRetentionLocal":    time.Second,
		"history.retentionTimerJitterDuration": time.Second,
	}
	for _, limit := range []string{
		"frontend.rps", "frontend.namespaceRPS", "frontend.namespaceRPS.visibility", "frontend.namespaceCount",
		"frontend.namespaceRPS.namespaceReplicationInducingAPIs",
		"history.rps", "history.namespaceRPS", "matching.rps", "matching.namespaceRPS",
		"frontend.persistenceMaxQPS", "history.persistenceMaxQPS", "matching.persistenceMaxQPS", "worker.persistenceMaxQPS",
		"frontend.persistenceNamespaceMaxQPS", "history.persistenceNamespaceMaxQPS",
		"matching.persistenceNamespaceMaxQPS", "worker.persistenceNamespaceMaxQPS",
	} {
		values[limit] = unlimited
	}
	maps.Copy(values, over)
	client := dynamicconfig.StaticClient{}
	for key, value := range values {
		client[dynamicconfig.MakeKey(key)] = value
	}
	return client
}
