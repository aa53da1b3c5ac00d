import type { ActivityPage } from '../../../../client/types.js';
import { usePagedList } from '../../base/paged-list.js';
import { useViewer } from '../../base/viewer.js';
import { PagedTable } from '../../parts/paged-table.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

type Entry = ActivityPage['entries'][number];

export function ActivityPart() {
  const { api, hasScope } = useViewer();
  const activity = usePagedList((page) => api.activity(page), 'entries', [api]);
  return (
    <Panel
      title="Activity"
      about="Changes through the API, newest first. The log has the last 10,000 changes and no ids of learners. Commands such as npm run keys are not in the log."
    >
      <PagedTable
        list={activity}
        subject="the activity log"
        name="Activity"
        columns={hasScope('operator') ? columns : columns.filter(({ title }) => title !== 'Tenant')}
        rowKey={(entry) => `${activity.rows?.indexOf(entry)}`}
        filter
        empty="No changes yet."
      />
    </Panel>
  );
}

const field = createColumnBuilder<Entry>();
const columns: Column<Entry>[] = [
  field('Time', 'at', { isTime: true }),
  field('Tenant', 'tenant'),
  field('Key', ({ key_name, key_id }) => key_name ?? key_id, {
    show: ({ key_name, key_id }) => (
      <>
        {key_name !== null && <bdi class="words">{key_name} </bdi>}
        <code class="words">{key_id}</code>
      </>
    ),
  }),
  field('Change', ({ action }) => action.replaceAll(/[._]/g, ' ')),
  field('Target', 'target', { format: (target) => target !== null && <code class="long">{target}</code> }),
];
