import { type Status, statusTexts } from '../../../../domain/classes/learner-status.js';
import { Badge } from '../../parts/stat.jsx';

export const statusTones: Readonly<Record<Status, 'good' | 'alert' | 'soft'>> = {
  ...{ unlikely: 'alert', at_risk: 'alert', on_track: 'good', reached: 'good' },
  ...{ expired: 'soft', idle: 'soft', few: 'soft', none: 'soft' },
};

export const StatusBadge = ({ status }: { readonly status: Status }) => (
  <Badge tone={statusTones[status]}>{statusTexts[status]}</Badge>
);
