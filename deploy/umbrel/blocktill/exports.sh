# The root of all links: the app's address in the network of the house, unless the file has
# another one, such as https://pay.example.com behind a tunnel.
APP_BLOCKTILL_BASE_URL="http://${DEVICE_DOMAIN_NAME}:8378"
if [ -s "${EXPORTS_APP_DATA_DIR}/public-address" ]; then
  APP_BLOCKTILL_BASE_URL="$(head -n 1 "${EXPORTS_APP_DATA_DIR}/public-address")"
fi
export APP_BLOCKTILL_BASE_URL
