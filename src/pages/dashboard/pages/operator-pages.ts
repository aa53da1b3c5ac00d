export { AboutDemo } from './about-demo.jsx';
export { LivePage } from './live.jsx';
export { OperationsPage } from './operations.jsx';
