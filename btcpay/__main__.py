"""`python -m btcpay` is the command `btcpay`."""

from btcpay.command import main

if __name__ == "__main__":
    main()
