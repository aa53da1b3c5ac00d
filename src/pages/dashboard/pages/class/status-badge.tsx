import { Badge } from '../../parts/stat.jsx';
import { type Status, statuses } from './status.js';

const looks: Readonly<Record<Status, 'good' | 'alert' | 'soft'>> = {
  ...{ risk: 'alert', track: 'good', idle: 'soft', few: 'soft' },
};

export const StatusBadge = ({ status }: { readonly status: Status }) => (
  <Badge look={looks[status]}>{statuses[status]}</Badge>
);
