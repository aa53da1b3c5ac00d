import type { Deployment as DeploymentFacts, Health } from '../../../../client/types.js';
import { dayAndTime, decimal, none, whole } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Badge, Facts, Panel } from '../../parts/stat.jsx';

export function VersionsPart() {
  const { can } = useViewer();
  return (
    <div class="grid">
      <HealthPanel />
      {can('operator') ? (
        <DeploymentPanel />
      ) : (
        <Panel title="Versions">
          <p class="soft">
            The versions of the deployment's parts need a key with the scope <code>operator</code>.
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
    <Panel title="Health" about="The service's parts, a moment ago.">
      <Loaded of={health} what="the health">
        {(data) => <Checks health={data} />}
      </Loaded>
      <div>
        <Button disabled={health.isLoading} onClick={health.reload}>
          Look again
        </Button>
      </div>
    </Panel>
  );
}

function Checks({ health: { status, checks, uptime_seconds } }: { health: Health }) {
  const { redis, clickhouse, pipeline, workers } = checks;
  const threads = `${whole(workers.threads)}, ${whole(workers.waiting)} requests wait for one`;
  const progress = [
    `${whole(pipeline.outbox_length)} answers on their way, the oldest for ${decimal(1)(pipeline.oldest_pending_seconds)} s`,
    `${whole(pipeline.journal_length)} rows of the journal`,
    `${whole(pipeline.parked)} parked`,
    `${whole(pipeline.erasures_due)} learners to be erased`,
  ];
  return (
    <Facts
      of={[
        ['Altogether', <State key="all" of={{ status }} />],
        ['Redis', <State key="redis" of={redis} />],
        ['ClickHouse', <State key="clickhouse" of={clickhouse} />],
        ['Threads', <State key="threads" of={workers} />, threads],
        ['Pipeline', <State key="pipeline" of={pipeline} />, progress.join('; ')],
        ['Up for', duration(uptime_seconds)],
      ]}
    />
  );
}

const State = ({ of: { status, reason } }: { of: { readonly status: string; readonly reason?: string } }) => (
  <>
    <Badge look={status === 'ok' ? 'good' : 'alert'}>{status}</Badge> {reason}
  </>
);

function duration(seconds: number): string {
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
    <Panel title="Versions" about="Of this deployment's parts.">
      <Loaded of={deployment} what="versions">
        {(data) => (
          <Facts
            of={[
              ['Skilltrace', data.version],
              ['Node.js', data.node_version],
              ['Redis', data.redis_version],
              ['ClickHouse', data.clickhouse_version ?? 'away'],
              ['Schema', data.schema_version ?? none],
              ['Partitions', data.partitions],
              ['Deployment', <Deployment key="deployment" of={data} />],
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

const Deployment = ({ of: { deployment_id, created_at } }: { of: DeploymentFacts }) => (
  <>
    <code>{deployment_id}</code>, made {dayAndTime(created_at)} UTC
  </>
);
