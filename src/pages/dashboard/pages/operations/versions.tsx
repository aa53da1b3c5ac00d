import type { Health } from '../../../../client/types.js';
import { dayAndTime, decimal, none, whole } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';

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
        <button type="button" disabled={health.isLoading} onClick={health.reload}>
          Look again
        </button>
      </div>
    </Panel>
  );
}

function Checks({ health: { status, checks, uptime_seconds } }: { health: Health }) {
  const { pipeline, workers } = checks;
  return (
    <dl>
      <dt>Altogether</dt>
      <dd>
        <Badge look={status === 'ok' ? 'good' : 'alert'}>{status}</Badge>
      </dd>
      <Check name="Redis" check={checks.redis} />
      <Check name="ClickHouse" check={checks.clickhouse} />
      <Check name="Threads" check={workers} />
      <dd>
        {whole(workers.threads)}, {whole(workers.waiting)} requests wait for one
      </dd>
      <Check name="Pipeline" check={pipeline} />
      <dd>
        {whole(pipeline.outbox_length)} answers on their way, the oldest for{' '}
        {decimal(1)(pipeline.oldest_pending_seconds)} s; {whole(pipeline.journal_length)} rows of the journal;{' '}
        {whole(pipeline.parked)} parked; {whole(pipeline.erasures_due)} learners to be erased
      </dd>
      <dt>Up for</dt>
      <dd>{duration(uptime_seconds)}</dd>
    </dl>
  );
}

interface CheckProps {
  readonly name: string;
  readonly check: { readonly status: string; readonly reason?: string };
}

const Check = ({ name, check: { status, reason } }: CheckProps) => (
  <>
    <dt>{name}</dt>
    <dd>
      <Badge look={status === 'ok' ? 'good' : 'alert'}>{status}</Badge> {reason}
    </dd>
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
          <dl>
            <dt>Skilltrace</dt>
            <dd>{data.version}</dd>
            <dt>Node.js</dt>
            <dd>{data.node_version}</dd>
            <dt>Redis</dt>
            <dd>{data.redis_version}</dd>
            <dt>ClickHouse</dt>
            <dd>{data.clickhouse_version ?? 'away'}</dd>
            <dt>Schema</dt>
            <dd>{data.schema_version ?? none}</dd>
            <dt>Partitions</dt>
            <dd>{data.partitions}</dd>
            <dt>Deployment</dt>
            <dd>
              <code>{data.deployment_id}</code>, made {dayAndTime(data.created_at)} UTC
            </dd>
          </dl>
        )}
      </Loaded>
    </Panel>
  );
}
