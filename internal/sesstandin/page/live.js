// Renews the list every two seconds while the page is looked at.
const live = document.getElementById("live");
let shown = "";
async function renew() {
  if (document.hidden) return;
  try {
    const answer = await fetch("/live" + location.search);
    if (!answer.ok) return;
    const html = await answer.text();
    if (html !== shown) live.innerHTML = shown = html;
  } catch {
    // The stand-in is being restarted: the next round finds it again.
  }
}
setInterval(renew, 2000);
document.addEventListener("visibilitychange", renew);
