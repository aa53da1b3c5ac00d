import type { LiveHistory } from '../../../../client/types.js';
import { useInterval } from '../../base/interval.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Panel } from '../../parts/stat.jsx';
import { createColumnBuilder, Table } from '../../parts/table.jsx';
import { LiveCharts } from './charts.jsx';

const refreshMs = 60_000;
const minuteMs = 60_000;

interface HistoryProps {
  readonly hours: number;
  readonly hasCharts: boolean;
  /** If true, keeps the last data: a reload would fail. */
  readonly isStale: boolean;
}

/** Busiest keys, and with `hasCharts` the charts. */
export function History({ hours, hasCharts, isStale }: HistoryProps) {
  const { api } = useViewer();
  const history = useLoad((signal) => api.liveHistory({ hours, signal }), [api, hours], true);
  useInterval(history.reload, isStale ? null : refreshMs);
  return (
    <Loaded load={history} subject="the history">
      {({ points, keys, step_minutes }) => (
        <>
          {hasCharts && (
            <LiveCharts
              figures={points}
              windowMs={hours * 60 * minuteMs}
              stepMs={step_minutes * minuteMs}
              empty="No data yet. The service stores a point each minute."
            />
          )}
          <Panel
            title="Traffic per key"
            about={`The ten keys with the most requests in the last ${hours === 1 ? 'hour' : `${hours} hours`}. Each minute counts the 20 busiest keys.`}
          >
            <Table
              name="Traffic per key"
              columns={columns}
              rows={keys}
              rowKey={({ key_id }) => key_id}
              empty="No requests yet. The service stores counts each minute."
            />
          </Panel>
        </>
      )}
    </Loaded>
  );
}

const field = createColumnBuilder<LiveHistory['keys'][number]>();
const columns = [
  field('Key', ({ name, key_id }) => name ?? key_id, { format: (key) => <bdi class="words">{key}</bdi> }),
  field('Tenant', 'tenant'),
  field('Requests', 'requests'),
  field('Answers', 'answers'),
  field('Errors', 'errors', { about: 'Responses with status 4xx or 5xx, except 429' }),
  field('Rejected by quota', 'rejected', { about: 'Responses with status 429' }),
];
