import type { Deployment as DeploymentFacts, Health } from '../../../../client/types.js';
import { formatDayTime, formatDecimal, formatInteger, missingText, pluralize } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Badge, Facts, Panel } from '../../parts/stat.jsx';

export function HealthPart() {
  const { hasScope } = useViewer();
  return (
    <div class="grid">
      <HealthPanel />
      {hasScope('operator') ? (
        <DeploymentPanel />
      ) : (
        <Panel title="Versions">
          <p class="soft">
            Component versions require a key with the scope <code>operator</code>.
          </p>
        </Panel>
      )}
    </div>
  );
}

function HealthPanel() {
  const { api } = useViewer();
  const health = useLoad((signal) => api.health({ signal }), [api]);
  return (
    <Panel title="Health" about="Current status of the service.">
      <Loaded load={health} subject="the status">
        {(data) => <HealthChecks health={data} />}
      </Loaded>
      <div>
        <Button disabled={health.isLoading} onClick={health.reload}>
          Refresh
        </Button>
      </div>
    </Panel>
  );
}

function HealthChecks({ health: { status, checks, uptime_seconds } }: { health: Health }) {
  const { redis, clickhouse, pipeline, workers } = checks;
  const threads = `${pluralize(workers.threads, 'thread')}, ${pluralize(workers.waiting, 'waiting request')}`;
  const progress = [
    `${formatInteger(pipeline.outbox_length)} pending answers, storage lag ${formatDecimal(1)(pipeline.oldest_pending_seconds)} s`,
    `${formatInteger(pipeline.journal_length)} journal rows`,
    `${formatInteger(pipeline.parked)} parked rows`,
    `${formatInteger(pipeline.erasures_due)} pending erasures`,
  ];
  return (
    <Facts
      facts={[
        ['Overall', <CheckState key="all" check={{ status }} />],
        ['Redis', <CheckState key="redis" check={redis} />],
        ['ClickHouse', <CheckState key="clickhouse" check={clickhouse} />],
        ['Threads', <CheckState key="threads" check={workers} />, threads],
        ['Pipeline', <CheckState key="pipeline" check={pipeline} />, progress.join('; ')],
        ['Uptime', formatDuration(uptime_seconds)],
      ]}
    />
  );
}

const CheckState = ({
  check: { status, reason },
}: {
  check: { readonly status: string; readonly reason?: string };
}) => (
  <>
    <Badge tone={status === 'ok' ? 'good' : 'alert'}>{status}</Badge> {reason}
  </>
);

function formatDuration(seconds: number): string {
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  return days > 0 ? `${days} d ${hours} h` : hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min`;
}

function DeploymentPanel() {
  const { api } = useViewer();
  const deployment = useLoad((signal) => api.deployment({ signal }), [api]);
  return (
    <Panel title="Versions" about="Components of this deployment.">
      <Loaded load={deployment} subject="versions">
        {(data) => (
          <Facts
            facts={[
              ['Skilltrace', data.version],
              ['Node.js', data.node_version],
              ['Redis', data.redis_version],
              ['ClickHouse', data.clickhouse_version ?? 'unavailable'],
              ['Schema', data.schema_version ?? missingText],
              ['Partitions', data.partitions],
              ['Deployment', <Deployment key="deployment" deployment={data} />],
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

const Deployment = ({ deployment: { deployment_id, created_at } }: { deployment: DeploymentFacts }) => (
  <>
    <code>{deployment_id}</code>, created {formatDayTime(created_at)}
  </>
);
